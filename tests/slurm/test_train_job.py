"""cluster/train.sbatch: one job on two nodes, stopped in the middle, finished after a requeue."""

import json
import re
import sys

from clusters import KEYS1, ROOT, TINY
from real_slurm import wait_until

END = 30


def test_a_train_job_is_requeued_and_finishes(idle_slurm):
    work = idle_slurm.base / "work"
    config = TINY | {"num_env_runners": 1}
    flags = ["--config", json.dumps(config), "--stop", f"{{training_iteration: {END}}}"]
    flags += ["--checkpoint-freq", "1", "--storage-path", str(work / "results-batch")]
    options = ["--parsable", "--nodes=2", "--cpus-per-task=1", "--mem=1500M"]
    script = [str(ROOT / "cluster" / "train.sbatch"), "-f", str(KEYS1), *flags]
    job_id = idle_slurm.login.run(
        "sbatch", *options, *script, cwd=work, env={"VENV": sys.prefix}
    ).stdout.strip()
    log = work / f"conspec-{job_id}.log"

    def shown(after=""):
        text = log.read_text() if log.exists() else ""
        if after:
            text = text[text.rfind(after) :] if after in text else ""
        return [int(number) for number in re.findall(r"  iteration (\d+)/", text)]

    # One trial needs two CPUs and a node has one: both nodes take part.
    wait_until(lambda: len(shown()) >= 3 or not idle_slurm.squeue(), "it trains")
    assert shown(), log.read_text()
    # What Slurm sends two minutes before the time limit.
    idle_slurm.login.run("scancel", "--signal=USR1", "--batch", job_id)
    wait_until(lambda: "back into the queue" in log.read_text(), "it is requeued")
    before = shown()[-1]
    assert before < END
    wait_until(lambda: not idle_slurm.squeue(), "it has finished")
    text = log.read_text()
    assert "the time limit is near; saving" in text
    assert f"after iteration {before}," in text
    again = shown(after="Resuming")
    assert again == list(range(before + 1, END + 1)), "iterations were lost or repeated"
    state = idle_slurm.login.run("scontrol", "show", "job", job_id).stdout
    assert "JobState=COMPLETED" in state and "Restarts=1" in state
    # Its token and its Ray are gone.
    assert not list((idle_slurm.home / ".rllib_conspec" / "slurm").glob("job-*"))
    assert not any(host.processes("raylet") for host in idle_slurm.nodes.values())
