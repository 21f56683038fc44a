"""Ray clusters on Slurm: `ray up cluster/slurm.yaml` without SSH, and runs that survive preemption.

The head and every worker node is a Slurm job. `ray up` submits the head; its batch script looks
after Ray and the training runs, and is requeued when it is preempted or runs out of time. The
autoscaler on the head submits and cancels worker jobs.
"""
