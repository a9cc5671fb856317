"""Texts with control tokens in them: each stretch of text between two control tokens is encoded as text, and a control
token is its id. That is how libraries encode the whole: they cut it at added tokens before anything else.

A stretch is text, whatever it says (refinery.transforms.tokenize.tokenizer), so a control token that
somebody typed is pieces of text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.load_tokenizer import file_name, load_tokenizer_bytes
from refinery.transforms.tokenize.published import ids_of
from refinery.transforms.tokenize.tiktoken_file import tokenizer_json
from refinery.transforms.tokenize.token_spans import Spans
from refinery.transforms.tokenize.tokenizer import Ids, Tokenizer
from refinery.transforms.tokenize.tokenizer_json import load_spec, parse, text_tokens

I32 = npt.NDArray[np.int32]


class NotAligned(ValueError):
    """Tokens and characters of a text cannot be proved to belong together."""


@dataclass(frozen=True)
class Control:
    """A control token. special: as the file says. left, right: whether it takes white space before it, behind it."""

    id: int
    special: bool
    left: bool = False
    right: bool = False


@dataclass(frozen=True)
class Stretches:
    """A tokenizer for such texts. first, rest: of the stretch that begins the text, and of the others: SentencePiece's
    space in front may be the first one's alone. controls: name -> control token. pattern: finds them, None for none."""

    first: Tokenizer
    rest: Tokenizer
    controls: dict[str, Control]
    pattern: re.Pattern[str] | None

    def find(self, text: str) -> list[tuple[int, int]]:
        """The names of control tokens in a text, leftmost and longest first."""
        return [found.span() for found in self.pattern.finditer(text)] if self.pattern else []

    def encode(self, text: str, controls: Iterable[tuple[int, int]]) -> tuple[Ids, Spans]:
        """Ids of the text, and the characters of each. controls: where control tokens are, ascending.

        Raises NotAligned; ValueError for a place that holds no control token.
        """
        ids: list[Any] = []
        starts: list[Any] = []
        ends: list[Any] = []
        at = 0
        for start, end in [*controls, (len(text), len(text))]:
            control = self.controls.get(text[start:end]) if start < end else None
            if control is None and start < end:
                raise ValueError(f"control token: {text[start:end]!r:.80} given, a token of the tokenizer is needed")
            low, high = (start, end) if control is None else _widened(text, at, start, end, control)
            if at < low:
                encoder = self.rest if at else self.first
                stretch = text[at:low]
                found = encoder.encode(stretch)
                spans = encoder.spans(stretch, found)
                if spans is None:
                    raise NotAligned(stretch[:40])
                ids.append(found)
                starts.append(spans.starts + at)
                ends.append(spans.ends + at)
            if control is not None:
                for parts, value in ((ids, control.id), (starts, start), (ends, end)):
                    parts.append(np.array([value]))
            at = high
        joined = [np.concatenate([np.empty(0, np.int64), *parts]) for parts in (ids, starts, ends)]
        return joined[0].astype(np.uint32), Spans(joined[1].astype(np.int32), joined[2].astype(np.int32))

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> tuple[str, list[tuple[int, int]]]:
        """The text of ids with the names of control tokens, and where these are."""
        names = {control.id: name for name, control in self.controls.items()}
        values = np.asarray(ids, np.int64)
        text, controls, at = "", [], 0
        places = np.flatnonzero(np.isin(values, list(names))).tolist()
        for place in [*places, len(values)]:
            text += self.first.decode(values[at:place]) if at < place else ""
            if place < len(values):
                name = names[int(values[place])]
                controls.append((len(text), len(text) + len(name)))
                text += name
            at = place + 1
        return text, controls


def _widened(text: str, at: int, start: int, end: int, control: Control) -> tuple[int, int]:
    """Where a control token begins and ends with the white space that it takes."""
    while control.left and start > at and text[start - 1].isspace():
        start -= 1
    while control.right and end < len(text) and text[end].isspace():
        end += 1
    return start, end


class WithControls:
    """A tokenizer whose texts have the names of control tokens, where others leave them out: for looking at a corpus of
    conversations."""

    def __init__(self, stretches: Stretches) -> None:
        self.stretches = stretches

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stretches.first, name)

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """See `Stretches.decode`."""
        return self.stretches.decode(ids)[0]


@lru_cache(maxsize=4)
def load_stretches(path: str) -> Stretches:
    """Raises ValueError as `load_tokenizer`, and for a SentencePiece model, which names no control tokens."""
    return read_stretches(read_resource(path), path)


def read_stretches(data: bytes, path: str) -> Stretches:
    """As `load_stretches`, of the bytes of a file of that name."""
    first = load_tokenizer_bytes(data, path)
    name = file_name(path)
    if name.endswith(".model"):
        raise ValueError(
            f"path: {path!r} given, the tokenizer.json of that model is needed: a SentencePiece model does not say "
            "which control tokens a template writes"
        )
    spec = tokenizer_json(data, path) if name.endswith(".tiktoken") else parse(data)
    ids, texts = ids_of(spec), {token["content"] for token in text_tokens(spec)}
    controls = {
        token["content"]: Control(ids[token["content"]], bool(token.get("special")), bool(token.get("lstrip")),
                                  bool(token.get("rstrip")))
        for token in spec.get("added_tokens") or []
        if token["content"] and token["content"] not in texts
    }  # fmt: skip
    longest = sorted(controls, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest))) if controls else None
    later = _never_prepended(spec)
    return Stretches(first, first if later is None else load_spec(later), controls, pattern)


def _never_prepended(spec: dict[str, Any]) -> dict[str, Any] | None:
    """The file of a tokenizer without the space in front of a text, where only the text's beginning gets one; None for
    others."""
    step = spec.get("pre_tokenizer") or {}
    steps = step.get("pretokenizers", [step])
    if not any(each.get("type") == "Metaspace" and each.get("prepend_scheme") == "first" for each in steps):
        return None
    changed = [{**each, "prepend_scheme": "never"} if each.get("type") == "Metaspace" else each for each in steps]
    return {**spec, "pre_tokenizer": {**step, "pretokenizers": changed} if "pretokenizers" in step else changed[0]}
