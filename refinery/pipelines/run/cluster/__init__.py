"""`refinery cluster`: how far a run on a cluster is, from its files, and what was submitted. Start at `progress.py` and
`launch.py`; scripts and objects are in runners/cluster.
"""
