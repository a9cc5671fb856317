"""All formats of sources, found by their declarations: the files of formats/, and a user's own by "module:NAME"."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import refinery.transforms.read.formats as formats
from refinery.transforms.core.stage import Reason
from refinery.transforms.core.wording import meant
from refinery.transforms.read.reader import COMPRESSIONS, Reader, ends_with

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:NAME


@cache
def readers() -> Mapping[str, Reader]:
    """Format -> its reader: every declaration in a module of formats/, in the order of modules and of their lines.

    Raises ValueError where two have one name, or one ending.
    """
    found: dict[str, Reader] = {}
    for module in sorted(entry.name for entry in pkgutil.iter_modules(formats.__path__)):
        values = vars(importlib.import_module(f"{formats.__name__}.{module}")).values()
        found |= named([*found.values(), *(value for value in values if isinstance(value, Reader))])
    return MappingProxyType(found)


def named(declared: Iterable[Reader]) -> dict[str, Reader]:
    """Readers by name. Raises ValueError where two have one name, or one ending."""
    found: dict[str, Reader] = {}
    for reader in dict.fromkeys(declared):
        if reader.name in found:
            raise ValueError(f"reader {reader.name}: declared twice")
        for other in found.values():
            if shared := set(other.endings) & set(reader.endings):
                raise ValueError(f"reader {reader.name}: ending {min(shared)!r} given, which {other.name} has")
        found[reader.name] = reader
    return found


def is_own(form: str) -> bool:
    """Whether a format is a user's own: "module:NAME"."""
    return REFERENCE.fullmatch(form) is not None


def find_reader(form: str) -> Reader:
    """The reader of a format: a name of ours, or "module:NAME", which is imported.

    Raises ValueError, one line, for a name that there is not, a module that cannot be imported, and what is not a
    Reader.
    """
    if form in readers():
        return readers()[form]
    if not is_own(form):
        raise ValueError(
            f"format: {form!r} given, one of {', '.join(readers())} or module:NAME is allowed{meant(form, readers())}"
        )
    module, _, name = form.partition(":")
    try:
        declared = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise ValueError(f"format: module {module!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(declared, Reader):
        raise ValueError(f"format: {form!r} given, the module has no declaration of a reader by that name")
    return replace(declared, module=form)


def reader_names() -> tuple[str, ...]:
    """Names of all formats of ours."""
    return tuple(readers())


def fielded_names() -> tuple[str, ...]:
    """Those of them whose records have fields with names."""
    return tuple(name for name, reader in readers().items() if reader.named_fields)


def reader_reasons() -> tuple[Reason, ...]:
    """The reasons that single formats of ours have."""
    return tuple(dict.fromkeys(reason for reader in readers().values() for reason in reader.reasons))


def reader_libraries() -> tuple[str, ...]:
    """The libraries that decide what readers of ours give."""
    return tuple(sorted({name for reader in readers().values() for name in reader.libraries}))


def format_of(path: str, source: str) -> str:
    """The format that the ending of `path` stands for. Raises ValueError, which names the source, for another one."""
    refuse(path, source)
    for reader in readers().values():
        if ends_with(path, reader.endings, reader.compressed):
            return reader.name
    alone = [ending for reader in readers().values() if not reader.compressed for ending in reader.endings]
    every = ", ".join(ending for reader in readers().values() for ending in reader.endings)
    allowed = f"{every} (all but {', '.join(alone)} also with {', '.join(COMPRESSIONS[1:])})"
    raise ValueError(f"source {source}: format: {path} has an unknown ending, allowed are {allowed}; or name a format")


def refuse(path: str, source: str) -> None:
    """Raise ValueError, which names the source, for a file that is known not to be what it is taken for."""
    for reader in readers().values():
        for ending, why in reader.refused:
            if ends_with(path, (ending,)):
                raise ValueError(f"source {source}: {path} is {why}")
