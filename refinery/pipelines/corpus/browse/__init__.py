"""`refinery browse`: a run in a browser, served on this machine alone. Start at serve.py and app.py."""
