"""`refine --track`: figures of a run to MLflow, Weights & Biases or OpenTelemetry. Start at `tracking.py`."""
