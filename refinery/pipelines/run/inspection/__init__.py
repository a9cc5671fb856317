"""`refinery inspect`: the status of a run, and how it is told."""
