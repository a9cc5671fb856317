"""The input of a job and what it reports. Start at report.py."""
