"""What the tests of the command share: calling it here or as a process, one real short run, and the
live page of real runs.
"""

import os
import pickle
import queue
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from rllib_conspec.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "report"), str(ROOT / "tests" / "report" / "live")]
# One file: an experiment whose environment breaks in its third iteration, then a sweep.
SWEEP = """\
broken:
  run: PPO
  env: breaks:Breaks
  config: {num_env_runners: 0, train_batch_size_per_learner: 128, num_epochs: 1}
cart:
  run: PPO
  env: CartPole-v1
  stop: {training_iteration: 3}
  checkpoint_config: {checkpoint_frequency: 1}
  config:
    num_env_runners: 0
    train_batch_size_per_learner: 200
    num_epochs: 1
    lr: {grid_search: [0.001, 0.0001]}
    seed: 0
"""
BREAKS = """\
import gymnasium as gym


class Breaks(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        if self.steps > 300:
            raise RuntimeError("the floor is lava")
        return self.observation_space.sample(), 0.0, self.steps % 10 == 0, False, {}
"""


@pytest.fixture
def rllib(tmp_path, monkeypatch):
    """Call `rllib ...` in this process, in an empty directory; Ray must not be started by it."""
    monkeypatch.chdir(tmp_path)

    def no_ray(*args, **kwargs):
        raise AssertionError("Ray was started")

    monkeypatch.setattr("ray.init", no_ray)
    return lambda *args: CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def refused(rllib, tmp_path):
    """Call `rllib ...`, expect one line on stderr and exit code 2, and nothing written."""

    def call(*args):
        before = written(tmp_path)
        result = rllib(*args)
        assert result.exit_code == 2, result.output
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert result.stderr.startswith("rllib: ")
        assert written(tmp_path) == before
        return result.stderr.strip().removeprefix("rllib: ")

    return call


def written(directory):
    """All files in it, but for the byte code that Python itself writes beside what it imports."""
    return sorted(p for p in directory.rglob("*") if "__pycache__" not in p.parts)


class Command:
    """`rllib ...` as a process of its own, with its output so far; `before` is what starts it,
    `module` what it is.
    """

    def __init__(self, *args, cwd, before=(), module="rllib_conspec.cli.main"):
        self.output = ""
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", module, *map(str, args)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{cwd}", "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # Read at once: a process whose output nobody takes stands still when the pipe is full.
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, text):
        """Read until a line has `text` in it."""
        while (line := self._lines.get()) is not None:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"ended without {text!r}:\n{self.output}")

    def finish(self, timeout=300):
        """Wait for the end; exit code and output."""
        end = time.monotonic() + timeout
        try:
            while (line := self._lines.get(timeout=max(0, end - time.monotonic()))) is not None:
                self.output += line
            self.process.wait(max(0, end - time.monotonic()))
        except (queue.Empty, subprocess.TimeoutExpired) as error:
            self.process.kill()
            raise AssertionError(f"not at its end after {timeout} s:\n{self.output}") from error
        return self.process.returncode, self.output


@pytest.fixture
def command(tmp_path):
    """Start `rllib ...` in an empty directory; what still runs at the end of the test is killed."""
    started = []

    def start(*args, **more):
        started.append(Command(*args, cwd=tmp_path, **more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture(scope="session")
def finished():
    """Run `rllib ...` in a directory, to its end: exit code and output."""
    return lambda *args, cwd: Command(*args, cwd=cwd).finish()


@dataclass
class Sweep:
    """A finished run of SWEEP. Its files are shared by all tests: read only."""

    results: Path
    trial: Path  # of PPO on CartPole, with three checkpoints
    code: int
    output: str


@pytest.fixture(scope="session")
def sweep(finished, tmp_path_factory):
    directory = tmp_path_factory.mktemp("sweep")
    (directory / "sweep.yaml").write_text(SWEEP)
    (directory / "breaks.py").write_text(BREAKS)
    results = directory / "results"
    (results / "broken").mkdir(parents=True)
    (results / "broken" / "mine.txt").write_text("keep")
    flags = ["--ray-num-cpus", "2"]
    code, output = finished("train", "-f", "sweep.yaml", *flags, cwd=directory)
    trial = results / "cart" / "trial_0_lr=0.001"
    assert trial.exists(), output  # else every test that looks at it fails without saying why
    return Sweep(results, trial, code, output)


@pytest.fixture
def checkpoint(sweep, tmp_path):
    """A copy of a CartPole checkpoint, to spoil as a test likes."""
    return Path(shutil.copytree(sweep.trial / "checkpoint_000002", tmp_path / "checkpoint_000002"))


@pytest.fixture
def made_earlier():
    """Make a checkpoint look as if an earlier version of this package had made it."""

    def spoil(checkpoint, how):
        from rllib_conspec import ConSpec, ConSpecConfig

        config = ConSpecConfig().get_state()
        if how == "options":
            del config["reward_models"]
        stored = {"class": ConSpec, "ctor_args_and_kwargs": ((config,), {})}
        content = pickle.dumps(stored)
        if how == "module":  # of the same length, as pickles have it before a name
            content = content.replace(b"conspec.algorithm.conspec", b"conspec.retrospec.conspec")
        (checkpoint / "class_and_ctor_args.pkl").write_bytes(content)
        state = {"reward_model": {"format": 2, "version": 0, "models": {}}}
        if how == "state":
            state = {"reward_model": {"prototypes": []}}
        (checkpoint / "learner_group/learner/state.pkl").write_bytes(pickle.dumps(state))
        (checkpoint / "files.json").unlink()

    return spoil


class LivePage:
    """The live page of runs, in a real browser."""

    def __init__(self, page):
        self.page = page

    def gains_points(self):
        """Wait for a point, and then for another one."""
        from serving import until

        points = "(document.querySelector('#learning .plot')?.data?.[0].x.length ?? 0)"
        until(self.page, f"{points} > 0")
        known = self.page.evaluate(points)
        until(self.page, f"{points} > {known}")

    def says(self, text):
        self.page.get_by_text(text).first.wait_for()


@pytest.fixture
def live(tmp_path):
    """The live page of all that is trained in this test, or None where there is no browser."""
    import browser as browsers
    from serving import served

    if browsers.missing():
        yield None
        return
    (tmp_path / "results").mkdir()
    with (
        browsers.started() as running,
        served(tmp_path / "results") as address,
        browsers.opened(running, address) as watched,
    ):
        watched.page.get_by_text("nothing here yet").wait_for()
        yield LivePage(watched.page)
