"""`SlurmJob`: hosts from SLURM."""
