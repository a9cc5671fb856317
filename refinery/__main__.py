"""`python -m refinery`, the same as the command `refinery`."""

from refinery.pipelines.shell.interrupts import leave_at_once


def main() -> None:
    """The console command. Signals first: importing the rest takes a while."""
    leave_at_once()
    from refinery.pipelines.cli.command_line import main as run_command

    run_command()


if __name__ == "__main__":
    main()
