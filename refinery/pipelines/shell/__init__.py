"""What the command line is to a shell: exit codes, completion, the end of `--help`."""
