"""Ray clusters on Slurm: `ray up cluster/slurm.yaml` without SSH, and runs that survive preemption.

The head and every worker node is a Slurm job. `ray up` submits the head; the program in it looks
after Ray and the training runs, and is requeued when it is preempted or runs out of time. The
autoscaler on the head submits and cancels worker jobs.

`sbatch.py` writes the batch scripts, the text that is submitted. A batch script prepares the shell
and becomes the program of its job: `head_job.py` or `worker_job.py`. cluster/train.sbatch, which
users submit themselves, comes to `train_job.py`: head and workers in one job, for one run.
"""
