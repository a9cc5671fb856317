"""The command line: one file a command, found by its name; command_line.py makes the parser and runs them.

A new file with a `COMMAND` is a new command. Each imports what it needs in `run`, so other commands and `--help` start
fast.
"""
