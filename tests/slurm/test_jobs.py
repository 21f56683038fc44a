import json

import pytest
from ray.autoscaler import tags as ray_tags
from real_slurm import wait_until

from rllib_conspec.slurm import jobs

CALL = "from rllib_conspec.slurm import jobs\n"


def test_rays_names_are_spelled_as_ray_spells_them():
    assert jobs.NODE_KIND == ray_tags.TAG_RAY_NODE_KIND
    assert jobs.HEAD == ray_tags.NODE_KIND_HEAD
    assert jobs.NODE_TYPE == ray_tags.TAG_RAY_USER_NODE_TYPE


def test_tags_survive_a_comment():
    tags = {"ray-node-name": "ray-ä|b-head", "address": "10.0.0.1:6379"}
    comment = jobs.encode(tags)
    assert jobs.decode(comment) == tags
    assert not set(comment) & set("|=, \n") - {"="}
    with pytest.raises(jobs.SlurmError, match="too long"):
        jobs.encode({"name": "x" * 800})


@pytest.mark.parametrize("comment", ["", "(null)", "for the paper", "W10=", "!!!"])
def test_a_comment_of_somebody_else_holds_no_tags(comment):
    assert jobs.decode(comment) == {}


def test_a_job_inherits_nothing_from_the_one_that_submits_it(monkeypatch):
    for name in ("SLURM_JOB_ID", "SBATCH_PARTITION", "RAY_AUTH_TOKEN", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    clean = jobs.clean_environment()
    assert clean["SLURM_CONF"] == "/etc/slurm.conf" and "PATH" in clean
    assert "7" not in clean.values()


def test_without_slurm_the_message_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(jobs.SlurmError, match=r"^squeue: not found. Is this a machine"):
        jobs.find("mine")


def test_submitted_found_tagged_cancelled(idle_slurm):
    script = "#!/bin/bash\n#SBATCH --job-name=ray-mine --nodelist=n1 -o /dev/null\nexec sleep 600\n"
    job_id = idle_slurm.python(CALL + "print(jobs.submit(script))", script=script).strip()
    # Another cluster of the same user, and a job that has nothing to do with Ray.
    idle_slurm.submit("#!/bin/bash\nexec sleep 600\n", "--job-name=ray-mine2")
    idle_slurm.submit("#!/bin/bash\nexec sleep 600\n", "--job-name=mine")
    wait_until(lambda: "RUNNING" in str(idle_slurm.squeue("-j", job_id)), "the job runs")
    code = f"""
jobs.update_tags("{job_id}", {{"a": "b"}})
(job,) = jobs.find("mine").values()
print(job.id, job.state, job.running, job.alive, job.node, job.tags)
jobs.cancel([job.id])
"""
    assert idle_slurm.python(CALL + code) == f"{job_id} RUNNING True True n1 {{'a': 'b'}}\n"
    wait_until(lambda: not idle_slurm.squeue("-n", "ray-mine"), "the job is gone")
    assert len(idle_slurm.squeue()) == 2


def test_a_refusal_carries_the_message_of_sbatch(idle_slurm):
    code = """
try:
    jobs.submit("#!/bin/bash\\n#SBATCH --partition=nowhere\\n")
except jobs.SlurmError as error:
    print(error)
"""
    assert "invalid partition specified: nowhere" in idle_slurm.python(CALL + code)


def test_the_place_in_the_queue(idle_slurm):
    for _ in range(2):
        idle_slurm.submit("#!/bin/bash\nexec sleep 600\n", "--nodes=2", "--exclusive", "--time=5")
    waiting = idle_slurm.submit("#!/bin/bash\n", "--exclusive", "--job-name=ray-mine")
    reasons = ("-t", "PD", "--sort=i")
    wait_until(
        lambda: (
            "None" not in (found := idle_slurm.squeue(*reasons, format="%r")) and len(found) == 2
        ),
        "two jobs wait, and Slurm knows why",
    )
    code = 'print(jobs.place_in_queue(jobs.find("mine")[job_id]))'
    place = idle_slurm.python(CALL + code, job_id=waiting)
    assert place.startswith(
        ("Priority, 2 of 2 waiting in main", "Resources, 2 of 2 waiting in main")
    )


def test_show_reads_the_fields_of_a_job(idle_slurm):
    job_id = idle_slurm.submit("#!/bin/bash\nexec sleep 600\n", "--requeue")
    code = "import json; fields = jobs.show(job_id); print(json.dumps(fields))"
    fields = json.loads(idle_slurm.python(CALL + code, job_id=job_id))
    assert fields["JobId"] == job_id and fields["Requeue"] == "1"
