"""Checks that more than one kind of output needs: texts, tokens, packed columns, takedowns. Start at file_checks.py."""
