"""`python -m refinery`, the same as the command `refinery`."""

from refinery.pipelines.cli.command_line import main

if __name__ == "__main__":
    main()
