"""Whether a program wrote a source file: by its name, by a mark in its comments, or by the form of its type.

A file that only mentions a mark has it inside a sentence or in quotes, one that writes it has it in a string; so marks
count where they begin a line of a comment near the top. generated_marks.py is the list.
"""

import re
from functools import cache
from typing import Any

import re2

from refinery.transforms.code.generated_marks import COMMENTS, ENDS, FORMS, NAMES, Mark

HEAD = 3_000  # bytes at the beginning of a file, in which generators say that they made it
TAIL = 400  # bytes at the end
NAMED = re.compile(
    r"lock|shrink|Carthage|__gen|[.](?:nib|xc|idea/|pnp|sum|zep|map|pb|dart|designer|feature|Designer|Feature)|_(?:pb|tlb|TLB)",
)
"""One of these is in every path of generated_marks.NAMES; few others have one."""
# One of these words is in every mark of a comment; few files have one, and only the lines around it are read closely.
WORDS = re2.compile(
    r"(?i)generat|gen'erated|object code|created by: |\$antlr|parser, made|original parser|produced by|\.rl\""
    r"|do(?:n't| not) (?:edit|modify)|devel::ppport|f2c|image dump|image file format|tapioca|autogen|compiled by"
    r"|decompiled|recreated from|autorest|by midl"
)
# A line of a comment begins with signs; in quotes stands what somebody else would write.
_SIGNS = r"(?im)^(?:[\"'] |rem |dnl )?[^\w\n\"'`@$<]{0,80}"
AROUND = 2  # lines
_COMPILED_COFFEE = re.compile(r"\b(?:__bind|__extends|__hasProp|__indexOf|__slice)\b|\b_(?:fn|i|len|ref|results)\b")
COFFEE_NAMES = 3  # temporary names, below which a closure is anybody's


@cache
def _marks() -> Any:
    options = re2.Options()
    options.max_mem = 64 << 20
    return re2.compile(_SIGNS + "(" + "|".join(f"(?:{mark.form})" for mark in COMMENTS) + ")", options)


def has_mark(comments: str) -> bool:
    """Whether a line begins with a mark. comments: lines of comments, or of a whole head, where it asks too much.

    A mark in small letters behind a line that does not end its sentence is a part of that sentence.
    """
    read, at = "", 0
    for word in WORDS.finditer(comments):
        if word.start() >= at:
            begin = max(at, _line_break(comments, word.start(), -1))
            at = _line_break(comments, word.end(), 1)
            read += comments[begin:at] + "\n\n"
    for match in _marks().finditer(read) if read else ():
        before = read[: match.start()].rstrip("\n")[-1:]
        if not (match.group(1)[:1].islower() and (before.isalnum() or before == ",")):
            return True
    return False


def _line_break(text: str, at: int, step: int) -> int:
    """Where the lines around a place begin (step -1) or end (step 1)."""
    for _ in range(AROUND + 1):
        found = text.rfind("\n", 0, at) if step < 0 else text.find("\n", at + 1)
        if found < 0:
            return 0 if step < 0 else len(text)
        at = found
    return at


@cache
def _names() -> Any:
    return re2.compile("|".join(f"(?:{mark.form})" for mark in NAMES))


@cache
def _of_type(ending: str, table: tuple[Mark, ...]) -> Any:
    forms = [mark.form for mark in table if ending in mark.endings]
    return re2.compile("(?m)" + "|".join(f"(?:{form})" for form in forms)) if forms else None


def is_named_generated(path: str) -> bool:
    """Whether a path says that a program wrote the file."""
    return NAMED.search(path) is not None and _names().search(path) is not None


def has_generated_form(text: str, name: str) -> bool:
    """Whether the first or last lines of a file have the form that a program gives to files of this type."""
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    first, last = _of_type(ending, FORMS), _of_type(ending, ENDS)
    if first is not None and first.search(text[:HEAD]):
        return True
    if last is not None and last.search("\n".join(text[-TAIL:].rstrip().rsplit("\n", 2)[-2:])):
        return True
    return ending == ".js" and _is_compiled_coffee(text)


def _is_compiled_coffee(text: str) -> bool:
    """Whether a script is what CoffeeScript before 1.2 wrote: a closure with names that nobody chooses."""
    if not text.startswith("(function() {\n") or not text.rstrip().endswith("}).call(this);"):
        return False
    return len(_COMPILED_COFFEE.findall(text)) >= COFFEE_NAMES
