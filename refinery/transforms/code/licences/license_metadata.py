"""What a package says of its licence: package.json, Cargo.toml, pyproject.toml, pom.xml.

A declaration that is not understood is UNKNOWN. A reference to an ordinary licence file says nothing; the file does.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from refinery.transforms.code.licences.license_cover import split_words
from refinery.transforms.code.licences.license_expressions import join
from refinery.transforms.code.licences.license_notices import UNKNOWN, declared
from refinery.transforms.code.licences.license_remainder import has_terms

METADATA = frozenset(("package.json", "cargo.toml", "pyproject.toml", "pom.xml"))
MAX_METADATA = 1_000_000  # characters of metadata that are read

_KEY = re.compile(r"licen[sc]e[\w-]{0,20}[\"']?\s{0,20}[:=>]", re.IGNORECASE)
_POM = re.compile(r"<license(?:\s[^<>]{0,200})?/?>")
_POM_PART = re.compile(r"<(name|comments)>([^<]{0,2000})")
_SEE = re.compile(r"see (?:the )?licen[sc]e in (\S+)", re.IGNORECASE)
_ORDINARY = re.compile(r"<?(?:[./\w-]*/)?(?:(?:un)?licen[sc]e|copying)(?:[-._][\w.-]*)?>?", re.IGNORECASE)
_CLASSIFIER = "License :: "
_OSI = _CLASSIFIER + "OSI Approved"


def said_by_package(name: str, text: str) -> str:
    """The expression that metadata of that name gives; UNKNOWN for what is not understood, "" for none.

    What cannot be read says nothing, unless it names a licence.
    """
    if len(text) > MAX_METADATA:
        return UNKNOWN
    try:
        if name == "pom.xml":
            return join("AND", _of_pom(text))
        text = text.removeprefix("\ufeff")
        data: Any = json.loads(text) if name == "package.json" else tomllib.loads(text)
    except (ValueError, RecursionError):
        return UNKNOWN if _KEY.search(text) else ""
    if not isinstance(data, dict):
        return ""
    found = list(filter(None, _of_node(data) if name == "package.json" else _of_toml(data)))
    return UNKNOWN if UNKNOWN in found else join("AND", found)


def _of_pom(text: str) -> Iterator[str]:
    for part in _POM.split(text)[1:]:
        entry, end, _ = part.partition("</license>")
        parts = dict(_POM_PART.findall(entry))
        understood = end and not has_terms(split_words(parts.get("comments", "")).words, holder=False)
        yield declared(parts.get("name", "")) if understood else UNKNOWN


def _of_node(data: dict[str, Any]) -> Iterator[str]:
    for given in (data.get("license"), data.get("licenses")):
        for one in given if isinstance(given, list) else [given]:
            value = one.get("type") if isinstance(one, dict) else one
            if isinstance(value, str) and (see := _SEE.fullmatch(value.strip())):
                yield _referred(see[1])
            elif value or one:
                yield declared(value) if isinstance(value, str) else UNKNOWN


def _of_toml(data: dict[str, Any]) -> Iterator[str]:
    tool, workspace = data.get("tool"), data.get("workspace")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    shared = workspace.get("package") if isinstance(workspace, dict) else None
    for table in (data.get("package"), shared, data.get("project"), poetry):
        if not isinstance(table, dict):
            continue
        given = table.get("license")
        if isinstance(given, dict):
            known = [key for key in ("text", "file") if key in given]
            yield declared(str(given["text"])) if "text" in given else ""
            yield _referred(given["file"]) if "file" in given else ""
            yield "" if known or "workspace" in given else UNKNOWN
        elif given:
            yield declared(given) if isinstance(given, str) else UNKNOWN
        file = table.get("license-file")
        yield _referred(file) if file and not isinstance(file, dict) else ""
        yield from map(_classifier, _list(table.get("classifiers")))


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _referred(path: Any) -> str:
    """UNKNOWN for terms in a file that is not an ordinary licence file."""
    return "" if isinstance(path, str) and _ORDINARY.fullmatch(path.strip()) else UNKNOWN


def _classifier(given: Any) -> str:
    """What a trove classifier says. One with the approval of the OSI that names no version says nothing by itself."""
    if not isinstance(given, str) or not given.startswith(_CLASSIFIER) or given.endswith(("Approved", "approved")):
        return ""
    found = declared(given.rpartition(" :: ")[2])
    return "" if found == UNKNOWN and given.startswith(_OSI) else found
