"""`refinery doctor`: what this installation and this machine have, and what a run on them would lack."""
