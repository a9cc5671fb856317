"""The declaration of a command, exit codes, completion and help texts. Start at command.py."""
