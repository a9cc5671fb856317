"""`refinery acquire`: the commands that bring inputs to this machine."""

from refinery.pipelines.shell.command import Command, Section

COMMAND = Command(
    name="acquire",
    summary="download files of a public crawl, or source files of repositories, for a recipe to read",
    section=Section.PREPARE,
)
