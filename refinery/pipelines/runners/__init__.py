"""Where a job runs: this machine's processes, or another runner's. Start at runner.py and local_runner.py."""
