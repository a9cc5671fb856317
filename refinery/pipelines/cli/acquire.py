"""`refinery acquire`: the commands that bring inputs to this machine."""

from refinery.pipelines.shell.command import Command, Section

COMMAND = Command(
    name="acquire",
    summary="files of a public crawl, or source files of repositories, checked, to be read by a recipe",
    section=Section.PREPARE,
)
