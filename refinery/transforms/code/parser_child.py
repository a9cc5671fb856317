"""The parser's process: parses texts of its standard input until that ends, and answers questions about their trees.

What is answered is all that crosses back; a tree stays here. Whatever a text does to the parser, it does it here:
parser_process.py holds the other end and says what becomes of a text that ends this process.

It needs no network and no files. It is not a sandbox: it protects the worker's life, not its secrets, so it gets none.
"""

import os
import resource
import sys
import threading
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import BinaryIO

from refinery.transforms.code.comments import look_at_comments
from refinery.transforms.code.construct_places import construct_places
from refinery.transforms.code.estimates import from_numbers
from refinery.transforms.code.languages import KINDS, LANGUAGES, SourceLanguage
from refinery.transforms.code.parse import MAX_ERROR_SHARE, parse
from refinery.transforms.code.parser_frames import (
    ANSWER,
    ANSWERED,
    COMMENTS,
    CONSTRUCTS,
    FAILED,
    NOT_PARSED,
    OVER,
    READY,
    REQUEST,
    UNITS,
)
from refinery.transforms.code.units import TreeUnits
from refinery.transforms.native.meter import end_process

STACK = 512 << 20  # of addresses: tree-sitter recurses some 50 bytes deep for each token of a text, of up to 2 MB
MEMORY = 3 << 30  # of addresses beside the stack: the limits of a parse allow 0.4 GB
TIMES = 4  # the memory that a parse may take, at which it is ended from within
SECONDS = 120  # of processor time for one text: the limits of a parse allow some 5 s, so this is no verdict on a text
LARGE = 100_000  # bytes of a text behind which memory is looked at
RETIRED = 600 << 20  # bytes of memory in use, beyond which the process is replaced by a new one

Answer = Callable[[bytes, SourceLanguage, "array[int]"], "list[int] | None"]


def answer_comments(data: bytes, language: SourceLanguage, numbers: "array[int]") -> list[int] | None:
    """Of comments.py: loose, size, then begin and end of the first ones."""
    parsed = parse(data, language)
    if parsed is None:
        return None
    found = look_at_comments(data, parsed, language)
    return [found.loose, found.size, *(offset for place in found.first for offset in place)]


def answer_units(data: bytes, language: SourceLanguage, numbers: "array[int]") -> list[int] | None:
    """start, level, kind, depth, whole of each unit. numbers: of Estimates, or none for a text that is not cut."""
    parsed = parse(data, language)
    if parsed is None or parsed.error_share > MAX_ERROR_SHARE:
        return None
    sizes, limit = from_numbers(numbers) if numbers else (None, None)
    units = TreeUnits(data, language, sizes.at if sizes else _no_size, limit).split(parsed.tree)
    return [number for unit in units for number in (*unit[:2], KINDS.index(unit.kind), unit.depth, unit.whole)]


def answer_constructs(data: bytes, language: SourceLanguage, numbers: "array[int]") -> list[int] | None:
    """The three places of each construct."""
    parsed = parse(data, language)
    if parsed is None or parsed.error_share > MAX_ERROR_SHARE:
        return None
    return [number for places in construct_places(data, parsed.tree, language) for number in places]


def _no_size(offset: int) -> int:
    return 0


ANSWERS: Mapping[int, Answer] = {
    COMMENTS: answer_comments,
    UNITS: answer_units,
    CONSTRUCTS: answer_constructs,
}


def main(answers: Mapping[int, Answer] = ANSWERS) -> None:
    """Answer requests of standard input on standard output until the other side is gone."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):  # what C code prints as it dies
        os.dup2(nothing, descriptor)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_AS", STACK + MEMORY)
    end_process(TIMES, OVER)
    threading.stack_size(STACK)
    worker = threading.Thread(target=serve, args=(requests, replies, answers))
    worker.start()
    worker.join()


def serve(requests: BinaryIO, replies: BinaryIO, answers: Mapping[int, Answer]) -> None:
    """The requests one after the other. Memory that runs out ends the process, as a wrong address does."""
    languages = tuple(LANGUAGES.values())
    with suppress(BrokenPipeError):
        replies.write(READY)
        replies.flush()
        while head := requests.read(REQUEST.size):
            question, language, size, count = REQUEST.unpack(head)
            data, numbers = requests.read(size), array("q", requests.read(8 * count))
            _limit("RLIMIT_CPU", int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + SECONDS)
            status, body = _answered(answers[question], data, languages[language], numbers)
            retired = len(data) > LARGE and _memory() > RETIRED
            replies.write(ANSWER.pack(status, retired, len(body)) + body)
            replies.flush()
            if retired:
                return


def _answered(answer: Answer, data: bytes, language: SourceLanguage, numbers: "array[int]") -> tuple[int, bytes]:
    try:
        found = answer(data, language, numbers)
    except MemoryError:
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - the other side raises it again, under its name
        return FAILED, type(error).__name__.encode()
    return (NOT_PARSED, b"") if found is None else (ANSWERED, array("q", found).tobytes())


def _limit(name: str, most: int) -> None:
    """Lower a soft limit; the hard one stays, so that it can be raised again."""
    which = getattr(resource, name)
    hard = resource.getrlimit(which)[1]
    with suppress(ValueError, OSError):  # not every system has each of them
        resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _memory() -> int:
    """Bytes in use. Not the most that were: Linux hands that number on from whoever started the process."""
    try:
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()
    except OSError:  # no Linux
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10


if __name__ == "__main__":
    main()
