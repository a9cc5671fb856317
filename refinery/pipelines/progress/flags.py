"""The arguments by which a user chooses how a command tells what it does."""

import argparse


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """For every command that may take long."""
    parser.add_argument("--quiet", action="store_true", help="print only errors, warnings and the result")
    parser.add_argument(
        "--log-json", action="store_true", help="print JSON events on standard error, one a line, instead of text"
    )
