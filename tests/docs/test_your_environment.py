"""What docs/your_environment.md shows works: in an empty directory, by the real command; and where
a newcomer stumbles, the answer is the one that the page gives.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rllib_conspec.algorithm import WholeEpisodePPOConfig
from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.environments import look, make_vector
from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.report.checkpoint import read_models
from rllib_conspec.reward_models.conspec.hints import EPISODES, ITERATIONS, hints
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.success import success_function

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "your_environment.md").read_text()
RLLIB = Path(sys.executable).with_name("rllib")  # the console script, as users call it


def block(name):
    """The code block under the comment `<!-- name -->`."""
    return re.search(rf"<!-- {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)[1]


ENVIRONMENT, FILE = block("switchroom.py"), block("switchroom.yaml")
SUCCESS = block("switchroom.py, appended")
COMMANDS = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()
# Three places, so that many episodes press both switches; whatever separates at all, freezes.
EASY = """\
env_config: {places: 3}
success: switchroom:both_on
conspec: {threshold: 0.0, min_successes: 1, freeze_after: 1}
seed: 0
"""


def test_the_files_are_short():
    assert len(ENVIRONMENT.splitlines()) <= 40
    assert len(FILE.splitlines()) == 4


@dataclass
class Ran:
    directory: Path
    output: str  # of `rllib train`
    found: str  # of `rllib found`
    results: list  # one for each iteration


def run(directory, name, *flags):
    """The commands of the page, with further flags for the first."""
    outputs = []
    for command, more in zip(COMMANDS, (flags, ()), strict=True):
        program, *words = shlex.split(command.replace("results/switchroom", f"results/{name}"))
        assert program == "rllib"
        done = subprocess.run(
            [RLLIB, *words, *more],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(done.stdout)
    lines = (directory / "results" / name / "trial_0" / "result.json").read_text().splitlines()
    return Ran(directory, *outputs, [json.loads(line) for line in lines])


@pytest.fixture(scope="module")
def empty_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("newcomer")
    (directory / "switchroom.py").write_text(ENVIRONMENT)
    (directory / "switchroom.yaml").write_text(FILE)
    return directory


@pytest.fixture(scope="module")
def ran(empty_directory):
    """Two iterations of the page's files, and of nothing else."""
    return run(empty_directory, "switchroom", "--stop", "{training_iteration: 2}")


@pytest.fixture(scope="module")
def easy(empty_directory, ran):
    """The same with the page's own success function, so easy that something is found at once."""
    with (empty_directory / "switchroom.py").open("a") as file:
        file.write(f"\n\n{SUCCESS}")
    name = ["--experiment-name", "easy", "--stop", "{training_iteration: 4}"]
    return run(empty_directory, "easy", *name, "--config", EASY)


def test_an_environment_in_a_file_of_the_current_directory_trains(ran):
    assert len(ran.results) == 2
    assert ran.results[-1]["env_runners"]["num_episodes_lifetime"] == 32
    assert ran.results[-1]["env_runners"]["episode_len_mean"] >= 80
    assert ran.results[-1]["conspec"]["prototypes"] == 8
    assert {p.name for p in ran.directory.iterdir()} <= {
        "__pycache__",
        "results",
        "switchroom.py",
        "switchroom.yaml",
    }


def test_found_answers(ran):
    assert "no critical step yet: no prototype has met the criterion" in ran.found
    assert "no critical step yet" in ran.output


def remembered(ran):
    """Successes that ConSpec holds in the newest checkpoint."""
    ((_, state),) = read_models(max(ran.directory.glob("results/easy/trial_0/checkpoint_*")))
    return ConSpecLearner.from_state(state).memory.examples(None)[0]


def test_steps_are_called_by_what_the_environment_calls_them(easy):
    """`critical_events` and `observation_names` of a plain environment reach the report."""
    found = [line for line in easy.found.splitlines() if "prototype" in line and ":" in line]
    assert found and all("separation" in line for line in found)
    events = {name for e in remembered(easy) for _, name in e.events}
    assert events == {"switch 1", "switch 2"}  # what a prototype near one of them is called by
    assert re.search(r"(place|left lamp|right lamp|waiting|door|noise) is ", easy.found)
    assert (easy.directory / "results/easy/trial_0/prototypes.png").stat().st_size > 1000


def test_a_success_function_of_ones_own_is_asked(easy):
    """In a room of three places both switches are often on; the page's own has five."""
    last = easy.results[-1]["env_runners"]
    assert 0.2 < last["success_rate"] < 1
    assert last["success_rate_20"] == pytest.approx(
        sum(r["env_runners"]["success_rate"] for r in easy.results) / 20
    )


def test_every_metric_of_ours_is_documented(easy):
    page = (DOCS / "options.md").read_text()
    ours = {"conspec", "seconds", "bytes_to_device"}
    leaves = {
        f"{section}/{name}" + ("/<i>" if isinstance(value, Mapping) else "")
        for result in easy.results
        for section in ours
        for name, value in result[section].items()
    }
    assert {"conspec/frozen", "conspec/separation/<i>", "seconds/reward_model"} <= leaves
    assert [leaf for leaf in sorted(leaves) if f"`{leaf}`" not in page] == []


# --- where a newcomer stumbles ----------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Write the page's environment, changed, as a module; gives the experiment's file."""
    monkeypatch.chdir(tmp_path)

    def write(module, change=lambda text: text, **settings):
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / f"{module}.py").write_text(change(ENVIRONMENT))
        experiment = {"run": "ConSpec", "env": f"{module}:SwitchRoom"} | settings
        (tmp_path / "file.yaml").write_text(json.dumps({"mine": experiment}))
        return "file.yaml"

    return write


def checked(file):
    (experiment,) = load_experiments(file, {})
    return validate(experiment)


def refused(file):
    with pytest.raises(UserError) as error:
        checked(file)
    return str(error.value)


def without_limit(text):
    return text.replace("    max_episode_steps = 100\n", "")


def test_no_time_limit_is_asked_for_by_name(here):
    assert refused(here("no_limit", without_limit)) == (
        "file.yaml: mine.config.max_episode_steps: is not known for this environment; set it in "
        "the config."
    )


def test_a_time_limit_in_the_config_is_applied(here):
    here("limited", without_limit)
    facts = look("limited:SwitchRoom", {}, max_episode_steps=30)
    envs = make_vector("limited:SwitchRoom", {}, 2, facts)
    envs.reset(seed=0)
    for _ in range(29):
        assert not envs.step(np.zeros(2, int))[3].any()
    assert envs.step(np.zeros(2, int))[3].all()
    envs.close()


def test_names_that_are_nearly_right_are_answered_by_the_right_one(here):
    assert refused(here("wrong_class", env="wrong_class:SwitchRom")).endswith(
        'unknown environment "wrong_class:SwitchRom". Did you mean "wrong_class:SwitchRoom"?'
    )
    wrong = here("wrong_option", config={"env_config": {"place": 7}})
    assert refused(wrong).endswith('env_config.place: unknown option. Did you mean "places"?')
    missing = here("there", env="their:SwitchRoom")
    assert 'cannot import "their"' in refused(missing)


def test_top_k_has_no_success_rate_to_stop_at(here):
    stop = {"env_runners/success_rate_20": 0.9}
    config = {"success": "top_k", "conspec": {"max_new_successes": 4}}
    assert "there is no such rate" in refused(here("relative", stop=stop, config=config))
    assert checked(here("relative2", config=config))[0].success == "top_k"
    assert "Set it to 4." in refused(here("relative3", config={"success": "top_k"}))


def test_goal_needs_what_the_page_says():
    episode = Episode(np.zeros((2, 1)), np.zeros(1), np.zeros(1), info={"is_success": True})
    assert success_function("goal")(episode) is True


def test_dict_observations_are_answered_by_their_keys():
    with pytest.raises(OptionError, match=r"observation_key: .*image.*observation_key: image"):
        look("minigrid:MiniGrid-DoorKey-6x6-v0", {})


def test_pictures_are_read_in_their_own_range_and_order():
    grid = look("minigrid:MiniGrid-DoorKey-6x6-v0", {}, observation_key="image")
    assert grid.observation_space.shape == (7, 7, 3) and grid.channels == "last"
    assert grid.observation_range <= 10 and grid.max_episode_steps == 360
    pong = look("ALE/Pong-v5", {}, max_episode_steps=100)
    assert pong.observation_space.shape == (4, 84, 84) and pong.channels == "first"
    assert pong.observation_range == 255


def test_the_pages_way_to_look(here, capsys):
    here("switchroom")
    exec(block("look.py"), {})
    assert "max_episode_steps=100" in capsys.readouterr().out


# --- what the page says -------------------------------------------------------------------------


def test_all_fields_of_an_episode_are_on_the_page():
    for name in [f.name for f in fields(Episode)] + ["frames"]:
        assert re.search(rf"`{name}`", PAGE), name


def test_hints_are_on_the_page_as_the_run_prints_them():
    def told(seen=(9, 9), **learner):
        usual = {"options": ConSpecOptions(), "learning": True, "iterations": 0}
        model = {"met": np.zeros(8, bool), "unseen_separation": np.full(8, np.nan), "active": 1}
        memory = SimpleNamespace(seen=seen)
        return hints(SimpleNamespace(**usual | model | learner, memory=memory))

    printed = [
        *told(seen=(0, EPISODES)),
        *told(seen=(EPISODES, 0)),
        *told(iterations=ITERATIONS),
    ]
    section = re.search(r"## Hints\n(.*?)\n## ", PAGE, re.DOTALL)[1]
    rows = re.findall(r"^\| (.*?) \| ", section, re.MULTILINE)[1:]
    assert len(printed) == 3 and len(rows) == 4
    for hint, row in zip(printed, rows, strict=False):
        assert hint.startswith(row)


def test_what_is_left_of_an_advantage():
    config = WholeEpisodePPOConfig()
    decay = config.gamma * config.lambda_
    pattern = r"20 steps later (\S+) %\s+arrive, after 60 steps (\S+) %, after 100 steps (\S+) %"
    (said,) = re.findall(pattern, PAGE)
    for steps, share in zip((20, 60, 100), said, strict=True):
        assert float(share) == pytest.approx(100 * decay**steps, rel=0.15)
    assert f"γλ = {decay:.2f}" in PAGE


def test_options_that_the_page_advises_exist():
    advised = re.findall(r"`(\w+): [\w.]+`", PAGE)
    config = vars(WholeEpisodePPOConfig())
    options = [f.name for f in fields(ConSpecOptions)]
    others = {"env", "run", "core_dim", "switchroom"}
    assert [n for n in advised if n not in {*config, *options, *others}] == []
