"""The commands of a folder, one file each, found by the words that people type: only the file that is meant is read."""

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from refinery.pipelines.shell.command import Command, Section


@dataclass(frozen=True)
class Registry:
    """The commands that the modules of a package declare as `COMMAND`.

    A module has the command's name, with "_" for "-" and " ": train_quality.py, acquire_git.py; try_.py for a word that
    Python keeps for itself. besides: modules of the package that declare none.
    """

    package: str
    besides: frozenset[str] = frozenset()

    @cached_property
    def modules(self) -> frozenset[str]:
        """Names of the modules, from the folder: none of them is imported."""
        folder = importlib.import_module(self.package).__path__
        return frozenset(module.name for module in pkgutil.iter_modules(folder)) - self.besides

    def load(self, module: str) -> Command:
        """The command of a module. Raises TypeError for a module without one, or with one of another name."""
        command = getattr(importlib.import_module(f"{self.package}.{module}"), "COMMAND", None)
        if not isinstance(command, Command):
            raise TypeError(f"{self.package}.{module}: it declares no COMMAND")
        if module_name(command.name) != module.removesuffix("_"):
            raise TypeError(
                f"{self.package}.{module}: its command has the name {command.name!r}, it must be of the file"
            )
        return command

    def all(self) -> list[Command]:
        """Every command, in the order of `--help`: groups before their members. Cost: every file is read, and no more
        is imported than they import at their top."""
        return in_order(self.load(module) for module in self.modules)

    def words(self) -> frozenset[str]:
        """The words that commands begin with."""
        return frozenset(command.words[0] for command in self.all())

    def named(self, words: Sequence[str]) -> list[Command]:
        """The command that these words begin with, below its group if it has one; [] where they name none that runs."""
        for count in (2, 1):
            name = " ".join(words[:count])
            if len(words) < count or not (found := {f"{module_name(name)}{end}" for end in ("", "_")} & self.modules):
                continue
            command = self.load(found.pop())
            if command.name == name and command.run is not None:
                return [*(self.load(module_name(word)) for word in command.words[:-1]), command]
        return []


def module_name(name: str) -> str:
    """ "acquire git" -> "acquire_git"."""
    return name.replace("-", "_").replace(" ", "_")


def in_order(commands: Iterable[Command]) -> list[Command]:
    """By section, then by name; members are in the section of their group."""
    found = list(commands)
    sections = {command.name: command.section for command in found}
    order = list(Section)
    return sorted(found, key=lambda each: (order.index(sections.get(each.words[0], each.section)), each.name))
