"""Commands of other packages: entry points of the group `refinery.commands`, whose value is module:NAME of a Command.

Reading entry points costs about 35 ms, three quarters of them the import of importlib.metadata: this module is imported
for a word that is not one of our commands, and for `--help`.
"""

import re
from argparse import REMAINDER, SUPPRESS, ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

from refinery.pipelines.shell.command import Command, Section

GROUP = "refinery.commands"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)


class UnusableCommandError(RuntimeError):
    """A package declares a command that cannot be loaded, or one whose name is taken; the message is one line."""


@dataclass(frozen=True)
class Installed:
    """An entry point. package: the distribution that declares it. refused: why it is left out, "" if it is not."""

    point: EntryPoint
    package: str
    refused: str = ""

    @property
    def name(self) -> str:
        return self.point.name

    def load(self) -> Command:
        """The command. Its module is imported, and its arguments are added to a parser that nobody uses, to report
        mistakes in them here. Raises UnusableCommandError."""
        if self.refused:
            raise UnusableCommandError(self.refused)
        try:
            command = self._checked(self.point.load())
        except (Exception, SystemExit) as error:  # whatever a module of others does when it is imported
            why = " ".join(f"{type(error).__name__}: {error}".split())
            advice = f"update {self.package}, or uninstall it"
            raise UnusableCommandError(f"{self._what()} cannot be loaded: {why:.500}; {advice}") from error
        return replace(command, section=Section.OTHER)

    def _what(self) -> str:
        return f"{self.package}: its command {self.name!r} ({self.point.value})"

    def _checked(self, command: object) -> Command:
        if not isinstance(command, Command) or command.run is None:
            raise TypeError(f"a {type(command).__name__} is there, a Command with `run` is needed")
        if command.name != self.name:
            raise ValueError(f"it calls itself {command.name!r}, it must have the name of its entry point")
        parser = ArgumentParser()
        command.arguments(parser)
        parser.format_help()
        return command

    def said(self) -> Command:
        """The command, or one that says why it cannot be loaded: in `--help`, and when it is called."""
        try:
            return self.load()
        except UnusableCommandError as error:
            return unusable(self.name, error)


def unusable(name: str, error: UnusableCommandError) -> Command:
    """A command in place of one that cannot be loaded; it says so."""

    def take_anything(parser: ArgumentParser) -> None:
        parser.add_argument("words", nargs=REMAINDER, help=SUPPRESS)

    def run(args: Namespace, flags: Sequence[str]) -> NoReturn:
        raise error

    return Command(name, "cannot be loaded; `refinery doctor` says why", arguments=take_anything, run=run)


def installed_commands(taken: Collection[str]) -> list[Installed]:
    """Every entry point of the group, by name, then by package. A name belongs to one command: ours (`taken`), or that
    of the first package. Nothing is imported."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _package(point)))
    return list(_each(points, taken))


def _each(points: Sequence[EntryPoint], taken: Collection[str]) -> Iterator[Installed]:
    owners = dict.fromkeys(taken, "refinery itself")
    for point in points:
        found = Installed(point, _package(point))
        if not NAME.fullmatch(point.name):
            why = "a word of lower-case letters, digits and dashes is allowed"
        elif point.name in owners:
            why = f"the name is taken by {owners[point.name]}; another one is needed"
        else:
            owners[point.name] = found.package
            why = ""
        yield replace(found, refused=f"{found._what()} is left out: {why}" if why else "")


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "a package"
