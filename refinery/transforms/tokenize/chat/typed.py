"""Control tokens that somebody typed are text. Before a template sees a record, one character of each is exchanged for
a private one, and put back in the text that the template makes: whatever looks like a control token there was written
by the template. Texts keep their length, and white space is never exchanged.

A template may change a text so that it becomes a control token only then: `lower` of <END>, or a blank taken out of
< end>. So every character that begins or ends a name is exchanged as well, wherever it stands. A template that reads
such a character would make another text then; `unguarded` is what it is compared with.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from refinery.transforms.tokenize.chat.messages import ASSISTANT, Refused

FIRST, LAST = 0x10FE00, 0x10FFFD  # of the private characters
TAKEN = re.compile("[\ufdd0\ufdd1\U0010fe00-\U0010fffd]")  # with the two that mark what is generated
BETWEEN = re.compile(r"\\.|[\s'\"]")  # words of a template
LEAST_TAG = 3  # characters


class Typed:
    """names: of control tokens. source: of the template. readable: those names that it may find in an assistant's text,
    such as <think>, since it names them itself and they are not special. Raises ValueError for names of too many
    different characters."""

    def __init__(self, names: Collection[str], readable: Collection[str], source: str) -> None:
        letters = sorted({letter for name in names for letter in name if not letter.isspace()})
        borders = {each for name in map(str.strip, names) for letter in name[:1] + name[-1:] for each in _cases(letter)}
        guarded = sorted(letter for letter in borders if not letter.isspace())
        if len(letters) + 2 * len(guarded) > LAST - FIRST:
            raise ValueError(f"control tokens of {len(letters)} different characters given, fewer are allowed")
        private = map(chr, range(FIRST, LAST))
        self._hidden = dict(zip(letters, private, strict=False))
        self._guards = dict(zip(guarded, private, strict=False))
        self._cut = dict(zip(guarded, private, strict=False))
        self._without_guards = _table(self._guards)
        self._unguarded = self._without_guards | _table(self._cut)
        self._back = self._unguarded | _table(self._hidden)
        self._border = _any_of(guarded)
        rest = [name for name in names if name not in readable]
        self._all, self._rest = _Names(names), _Names(rest)
        self._tags = _any_of({*readable, *_tags(source, names, guarded)})

    def hide(self, value: Any, is_assistant: bool = False, is_key: bool = False) -> Any:
        """A value in whose texts no control token is left. Raises Refused for texts with private characters."""
        if isinstance(value, str):
            if TAKEN.search(value):
                raise Refused("private-character")
            return self._hide(value, is_assistant, is_key)
        if isinstance(value, dict):
            return {
                self.hide(name, is_assistant, True): self.hide(inner, is_assistant) for name, inner in value.items()
            }
        return [self.hide(inner, is_assistant) for inner in value] if isinstance(value, list) else value

    def hide_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message likewise; its role is one of a closed list, and its keys are those of the form."""
        is_assistant = message["role"] == ASSISTANT
        return {name: value if name == "role" else self.hide(value, is_assistant) for name, value in message.items()}

    def unguarded(self, value: Any) -> Any:
        """A value that was hidden, where nothing is exchanged but a character of each complete name."""
        if isinstance(value, str):
            return value if value.isascii() else value.translate(self._unguarded)
        if isinstance(value, dict):
            return {self.unguarded(name): self.unguarded(inner) for name, inner in value.items()}
        return [self.unguarded(inner) for inner in value] if isinstance(value, list) else value

    def has_typed(self, text: str) -> bool:
        """Whether a text has a control token that somebody typed, or a part of one at a border."""
        return not text.isascii() and text.translate(self._without_guards) != self.shown(text)

    def shown(self, text: str) -> str:
        """The text with all characters put back."""
        return text if text.isascii() else text.translate(self._back)

    def _hide(self, text: str, is_assistant: bool, is_key: bool) -> str:
        if not self._border:
            return text
        names = self._rest if is_assistant else self._all
        places = dict.fromkeys((found.start() for found in self._border.finditer(text)), self._guards)
        if is_assistant and self._tags:
            for found in self._tags.finditer(text):
                for place in range(*found.span()):
                    places.pop(place, None)
        if not is_key:
            places |= dict.fromkeys(names.cut(text), self._cut)
        places |= dict.fromkeys(names.begun(text), self._hidden)
        if not places:
            return text
        letters = list(text)
        for place, exchanged in places.items():
            letters[place] = exchanged.get(letters[place], letters[place])
        return "".join(letters)


def _cases(letter: str) -> set[str]:
    """A character, and those that a change of case makes it of."""
    return {each for each in (letter, letter.lower(), letter.upper(), letter.swapcase()) if len(each) == 1}


def _table(exchanged: Mapping[str, str]) -> dict[int, str]:
    """For str.translate, to put characters back."""
    return {ord(put): letter for letter, put in exchanged.items()}


def _any_of(texts: Collection[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True)))) if texts else None


def _tags(source: str, names: Collection[str], guarded: Collection[str]) -> set[str]:
    """What a template names itself and may look for in an assistant's text, such as </think>, where it is neither a
    control token nor a part of one."""
    words = {word for word in BETWEEN.split(source) if len(word) >= LEAST_TAG and word[0] in guarded}
    return {word for word in words if not any(name in word or word in name for name in names)}


class _Names:
    """Where names are in a text, all of one or a part at its border, which the template could complete."""

    def __init__(self, names: Iterable[str]) -> None:
        names = sorted(names, key=len, reverse=True)
        self._pattern = _any_of(names)
        self._longest = len(names[0]) if names else 0
        self._heads = {name[:size] for name in names for size in range(1, len(name))}
        self._tails = {name[size:] for name in names for size in range(1, len(name))}

    def begun(self, text: str) -> Iterable[int]:
        """Where the first character of a name is that is not white space."""
        at = 0
        while self._pattern and (found := self._pattern.search(text, at)):
            yield found.end() - len(found[0].lstrip())
            at = found.start() + 1

    def cut(self, text: str) -> Iterable[int]:
        """The character of each part at a border that begins or ends its name; also at the border that is left when
        white space is taken away."""
        for first, last in {(0, len(text)), (len(text) - len(text.lstrip()), len(text.rstrip()))}:
            for size in range(1, min(self._longest, last - first + 1)):
                if text[last - size : last] in self._heads:
                    yield last - size
                if text[first : first + size] in self._tails:
                    yield first + size - 1
