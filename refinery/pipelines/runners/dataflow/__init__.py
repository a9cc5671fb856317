"""Jobs on Dataflow: flags, names, records, the package of the workers. Start at jobs.py."""
