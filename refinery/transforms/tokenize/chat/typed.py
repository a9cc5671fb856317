"""Control tokens that somebody typed are text. Before a template sees a record, one character of each is exchanged for
a private one, and put back in the text that the template makes: whatever looks like a control token there was written
by the template. Texts keep their length, and no template looks at that character: it is never white space.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

from refinery.transforms.tokenize.chat.messages import ASSISTANT, Refused

FIRST, LAST = 0x10FE00, 0x10FFFD  # of the private characters
TAKEN = re.compile("[\ufdd0\ufdd1\U0010fe00-\U0010fffd]")  # with the two that mark what is generated


class Typed:
    """names: of control tokens. readable: those of them that a template may find in an assistant's text, such as
    <think>, since it names them itself and they are not special. Raises ValueError for names of too many different
    characters."""

    def __init__(self, names: Collection[str], readable: Collection[str]) -> None:
        letters = sorted({letter for name in names for letter in name if not letter.isspace()})
        if len(letters) > LAST - FIRST:
            raise ValueError(f"control tokens of {len(letters)} different characters, up to {LAST - FIRST} are allowed")
        self._hidden = {letter: chr(FIRST + number) for number, letter in enumerate(letters)}
        self._back = str.maketrans({hidden: letter for letter, hidden in self._hidden.items()})
        self._all, self._rest = _Names(names), _Names([name for name in names if name not in readable])

    def hide(self, value: Any, is_assistant: bool = False, is_key: bool = False) -> Any:
        """A value in whose texts no control token is left. Raises Refused for texts with private characters."""
        if isinstance(value, str):
            if TAKEN.search(value):
                raise Refused("private-character")
            return self._hide(value, self._rest if is_assistant else self._all, is_key)
        if isinstance(value, dict):
            return {
                self.hide(name, is_assistant, True): self.hide(inner, is_assistant) for name, inner in value.items()
            }
        return [self.hide(inner, is_assistant) for inner in value] if isinstance(value, list) else value

    def hide_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message likewise; its role is one of a closed list, and its keys are those of the form."""
        is_assistant = message["role"] == ASSISTANT
        return {name: value if name == "role" else self.hide(value, is_assistant) for name, value in message.items()}

    def shown(self, text: str) -> str:
        """The text with all characters put back."""
        return text.translate(self._back)

    def _hide(self, text: str, names: "_Names", is_key: bool) -> str:
        places = set(names.begun(text))
        if not is_key:
            places |= set(names.cut(text))
        if not places:
            return text
        letters = list(text)
        for place in places:
            letters[place] = self._hidden.get(letters[place], letters[place])
        return "".join(letters)


class _Names:
    """Where names are in a text, all of one or a part at its border, which the template could complete."""

    def __init__(self, names: Iterable[str]) -> None:
        names = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, names))) if names else None
        self._longest = len(names[0]) if names else 0
        self._heads = {name[:size] for name in names for size in range(1, len(name))}
        self._tails = {name[size:] for name in names for size in range(1, len(name))}

    def begun(self, text: str) -> Iterable[int]:
        """Where a name begins."""
        at = 0
        while self._pattern and (found := self._pattern.search(text, at)):
            yield found.start()
            at = found.start() + 1

    def cut(self, text: str) -> Iterable[int]:
        """A character of each part at a border."""
        for size in range(1, min(self._longest, len(text) + 1)):
            if text[-size:] in self._heads:
                yield len(text) - size
            if text[:size] in self._tails:
                yield 0
