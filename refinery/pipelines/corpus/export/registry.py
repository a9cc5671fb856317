"""All formats of exports of texts, found by their declarations: the files of formats/, and a user's own."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import refinery.pipelines.corpus.export.formats as formats
from refinery.pipelines.corpus.export.export_format import ExportFormat
from refinery.pipelines.recipe.user_stages import NO_CODE, UserCode, load_declaration, offered
from refinery.transforms.core.wording import meant
from refinery.transforms.read.registry import REFERENCE

GROUP = "refinery.exports"  # of entry points


@cache
def export_formats() -> Mapping[str, ExportFormat]:
    """Name -> format: every declaration in a module of formats/, in the order of modules and of their lines.

    Raises ValueError where two have one name.
    """
    found: dict[str, ExportFormat] = {}
    for module in sorted(entry.name for entry in pkgutil.iter_modules(formats.__path__)):
        for value in vars(importlib.import_module(f"{formats.__name__}.{module}")).values():
            if isinstance(value, ExportFormat) and found.setdefault(value.name, value) is not value:
                raise ValueError(f"export {value.name}: declared twice")
    return MappingProxyType(found)


def load_format(name: str, folder: Path | None = None, also: Sequence[str] = ()) -> tuple[ExportFormat, UserCode]:
    """The format that `--format` names: one of ours, an entry point of an installed package, or "module:NAME" of a
    module in `folder` (the working directory) or of an installed package; and the code that it is made of.

    also: names that are allowed where this is called, for messages. Raises ValueError, one line, for what is not there,
    is not a declaration, or has the name of one of ours.
    """
    if name in export_formats():
        return export_formats()[name], NO_CODE
    reference = name
    if not REFERENCE.fullmatch(name):
        points = offered(GROUP)
        if name not in points:
            known = [*export_formats(), *also, *sorted(points)]
            hint = meant(name, known, "") or f"one of {', '.join(known)} or module:NAME is allowed"
            raise ValueError(f"--format: {name!r:.80} given, {hint}")
        reference = points[name]
    declared, code = load_declaration("--format", reference, folder or Path.cwd(), ExportFormat)
    if declared.name in export_formats():
        raise ValueError(f"--format: {name!r} given, an export {declared.name!r}: a name that no format has is allowed")
    return replace(declared, module=reference), code


def installed_format(name: str) -> ExportFormat | None:
    """The format of a published export by its name: one of ours, or what an installed package offers under that name.
    Code that an export names is not imported."""
    if name in export_formats():
        return export_formats()[name]
    for reference in offered(GROUP).values():
        declared, _ = load_declaration("format", reference, Path.cwd(), ExportFormat)
        if declared.name == name:
            return declared
    return None
