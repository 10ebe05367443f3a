"""Judging on the workers of a Dask cluster: on this machine, by Slurm, on Kubernetes."""
