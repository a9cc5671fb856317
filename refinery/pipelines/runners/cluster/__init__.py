"""`refinery cluster`: a run's steps as jobs of Slurm or Kubernetes. Start at `sbatch.py` and `kubernetes.py`; what is
done and what is missing is in run/cluster.
"""
