"""`refinery inspect`: the status of a run, and its form as text and JSON."""
