"""Functions, classes and types of a source text that mean the same wherever they stand: what may be compared alone.

They follow from the syntax alone, never from a tokenizer's budget, so the phase that hashes them knows nothing of
it: the outermost whole nodes of the kinds FUNC_BODY, CLASS_DECL and TYPEDEF. Namespaces, guards and `extern "C"` blocks
are opened, since what is in them is compared one by one; functions and classes are not, so members are never alone.
"""

import re
from typing import NamedTuple

import numpy as np

from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.code.parser_frames import CONSTRUCTS
from refinery.transforms.code.parser_process import PARSER, ParserDied, ParserTimedOut

LINE_END = re.compile(rb"[ \t]*(?:;[ \t]*)?(?:\r?\n|\Z)")
HEAD_BYTES = 400  # in front of a line's first sign that are looked at
LONE = re.compile("[\ud800-\udfff]")
SEMICOLON = re.compile(rb"[ \t]*;")


class Construct(NamedTuple):
    """Characters start to end (exclusive) are the construct; begin to stop what goes where it is cut out: with the
    comments and decorators right above it, and whole lines where nothing else stands in them.
    """

    begin: int
    start: int
    end: int
    stop: int


def whole_constructs(text: str, language: str) -> list[Construct]:
    """The self-contained constructs of a text in one of LANGUAGES, in order; none where it does not parse.

    None either where it ends the parser's process: a stage that must have the tree makes a dead letter of such a file.
    Cost: one parse (3.5 MB/s for C++); linear, no recursion. Lone surrogates are not letters.
    """
    if language not in LANGUAGES:
        return []
    data = LONE.sub("\ufffd", text).encode()  # of three bytes, too
    try:
        places = PARSER.ask(CONSTRUCTS, language, data)
    except (ParserDied, ParserTimedOut):
        return []
    if not places:
        return []
    found = [_extended(data, *places[i : i + 3]) for i in range(0, len(places), 3)]
    if data.isascii():
        return [Construct(*place) for place in found]
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    characters = np.concatenate([np.zeros(1, np.int64), np.cumsum(begins)])
    return [Construct(*characters[list(place)].tolist()) for place in found]


def _extended(data: bytes, begin: int, start: int, end: int) -> tuple[int, int, int, int]:
    least = max(0, begin - HEAD_BYTES)  # more indentation than that is none
    line = data.rfind(b"\n", least, begin) + 1 or least
    behind = LINE_END.match(data, end)
    if behind and (line == 0 or data[line - 1] == 0x0A) and not data[line:begin].strip():
        return line, start, end, behind.end()
    semicolon = SEMICOLON.match(data, end)
    return begin, start, end, semicolon.end() if semicolon else end
