"""What runs once all is checked: Ray, Tune, progress, interrupt, evaluation, Slurm."""
