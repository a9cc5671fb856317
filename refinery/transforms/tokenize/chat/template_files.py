"""Where a chat template and the names of special tokens come from: files beside the tokenizer, or of the recipe."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from refinery.transforms.core.hub_file import HUB, parse_hub
from refinery.transforms.core.resources import read_resource

TEMPLATE, CONFIG = "chat_template.jinja", "tokenizer_config.json"
SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


class TemplateFile(NamedTuple):
    """source: of the template. path: where it was. special: bos_token and others by name, as files and recipe say."""

    source: str
    path: str
    special: Mapping[str, str]


def beside(tokenizer: str, name: str) -> str:
    """The path of a file in the folder of a tokenizer.

    >>> beside("models/tokenizer.json", "tokenizer_config.json")
    'models/tokenizer_config.json'
    """
    if tokenizer.startswith(HUB):
        repository, commit, file = parse_hub(tokenizer)
        folder = file.rpartition("/")[0]
        return f"{HUB}{repository}@{commit}/{folder}{'/' if folder else ''}{name}"
    folder, slash, _ = tokenizer.rpartition("/")
    return f"{folder}{slash}{name}"


def candidates(template: str | None, tokenizer: str) -> Iterator[str]:
    """The files that may say something, the first template counts."""
    if template is not None:
        yield template
    else:
        yield beside(tokenizer, TEMPLATE)
    yield beside(tokenizer, CONFIG)


def template_files(template: str | None, tokenizer: str) -> tuple[str, ...]:
    """Those of them that are there: their content decides the result."""
    return tuple(path for path in candidates(template, tokenizer) if path == template or _read(path) is not None)


def read_template(template: str | None, tokenizer: str, special: Mapping[str, str]) -> TemplateFile:
    """The template and the special tokens. Raises ValueError, one line, OSError for the recipe's file."""
    source, place = "", ""
    config: dict[str, Any] = {}
    for path in candidates(template, tokenizer):
        data = read_resource(path) if path == template else _read(path)
        if data is None:
            continue
        text = _decoded(data, path)
        if path.endswith(".json"):
            found = _config(text, path)
            config = config if path == template and config else found
            text = _named(found, path)
        if not place and text:
            source, place = text, path
    if not place:
        raise ValueError(
            f"template: none given, and none is beside the tokenizer {tokenizer}: {TEMPLATE}, or chat_template in "
            f"{CONFIG}, or the path of one is needed"
        )
    names = {name: text for name in SPECIAL if (text := _token(config.get(name)))}
    return TemplateFile(source, place, {**names, **special})


def _read(path: str) -> bytes | None:
    try:
        return read_resource(path)
    except OSError:
        return None


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"template: {path} given, which is not UTF-8") from None


def _config(text: str, path: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"template: {path} given, which is not a JSON object")
    return found


def _named(config: Mapping[str, Any], path: str) -> str:
    """chat_template of a tokenizer_config.json: a text, or a list of named ones, of which `default` counts."""
    found = config.get("chat_template", "")
    if isinstance(found, list):
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        if "default" not in named:
            raise ValueError(f"template: {path} has {sorted(map(str, named))}, and none that is called default")
        found = named["default"]
    return found if isinstance(found, str) else ""


def _token(value: Any) -> str:
    """A special token, which may be an object with its flags."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""
