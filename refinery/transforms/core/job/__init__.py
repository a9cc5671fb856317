"""What a job is told and what it reports. Start at report.py."""
