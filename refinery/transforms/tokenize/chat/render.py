"""A conversation as a text, its trained characters, and its control tokens.

Trained is what the model itself would have to write: an assistant's text, its calls, and the control token that ends
its turn. Where a template says so by `{% generation %}`, that counts. Where it does not, the text up to an assistant's
turn is rendered with the prompt for generation, and the text up to its end without: both must begin the whole text.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from refinery.transforms.core.spans.marks import Marks, Places
from refinery.transforms.tokenize.chat.messages import Conversation, Refused, Turn
from refinery.transforms.tokenize.chat.sandbox import Generation, Sandbox, render
from refinery.transforms.tokenize.chat.template_files import TemplateFile
from refinery.transforms.tokenize.chat.typed import Typed
from refinery.transforms.tokenize.stretches import Stretches

Ends = Literal["agree", "template", "turn"]
Span = tuple[int, int]


class Rendered(NamedTuple):
    """text: as it is encoded. found: what is to be counted of it."""

    text: str
    marks: Marks
    found: tuple[str, ...]


class ChatTemplate:
    """A compiled template of a tokenizer. date: for templates that ask for it.

    Raises ValueError, one line that names the template, where it cannot be used.
    """

    def __init__(self, file: TemplateFile, stretches: Stretches, date: datetime.date | None) -> None:
        self._stretches = stretches
        self._special = dict(file.special)
        self._sandbox = Sandbox(date)
        self._template = self._sandbox.compiled(file.source)
        self.has_tags = "generation" in file.source and "endgeneration" in file.source
        controls = stretches.controls
        readable = [name for name, control in controls.items() if not control.special and name in file.source]
        self._typed = Typed(controls, readable)

    def controls(self, text: str) -> list[Span]:
        """Where control tokens are in a text that the template made."""
        return self._stretches.find(text)

    def write(self, turns: Sequence[Mapping[str, Any]], tools: Any, size: int, prompt: bool = False) -> str:
        """The template's text of messages. Raises what `sandbox.render` raises."""
        variables = {"messages": list(turns), "tools": tools, "documents": None, "add_generation_prompt": prompt}
        return render(self._sandbox, self._template, size, {**self._special, **variables})

    def rendered(self, conversation: Conversation, size: int, ends: Ends) -> Rendered:
        """A conversation as a text. size: characters of its record.

        Raises Refused where its trained spans cannot be found for certain, and as `sandbox.render`.
        """
        turns, found = conversation.turns, set[str]()
        hidden = [self._typed.hide_message(turn.message) for turn in turns]
        tools = self._typed.hide(conversation.tools)
        raw = self.write(hidden, tools, size)
        text, tagged = without_marks(raw)
        controls = self._stretches.find(text)
        mine = [number for number, turn in enumerate(turns) if turn.is_assistant]
        if self.has_tags:
            spans = tagged
            if ends == "turn":
                spans = [to_turn_end(text, controls, start, end) for start, end in tagged]
        else:
            spans = [self._by_prefixes(text, hidden, tools, size, number) for number in mine]
        trained = self._chosen(text, spans, [(turns[n], hidden[n]) for n in mine], controls, found)
        shown = self._typed.shown(text)
        if shown != text:
            found.add("conversation/control-token-typed")
        if not turns[-1].is_assistant:
            found.add("conversation/ends-without-answer")
        return Rendered(shown, Marks(trained, tuple(controls)), tuple(sorted(found)))

    def _chosen(
        self, text: str, spans: Sequence[Span], turns: Sequence[tuple[Turn, Mapping[str, Any]]],
        controls: Sequence[Span], found: set[str],
    ) -> Places:  # fmt: skip
        """The spans that are trained, in order."""
        is_directed = any(not turn.trains or turn.is_cut for turn, _ in turns)
        if len(spans) != len(turns):
            if is_directed:
                raise Refused("turns-not-found", f"{len(spans)} spans of {len(turns)} turns")
            return tuple((start, end) for start, end in spans if start < end)
        chosen = []
        for (start, end), (turn, hidden) in zip(spans, turns, strict=True):
            content = hidden["content"]
            if content and content not in text[start:end]:
                found.add("conversation/changed-by-template")
                if is_directed and content.strip()[-20:] not in text[start:end]:
                    raise Refused("turns-not-found", "a turn is not in its span")
            if turn.is_cut and turn.trains:
                found.add("conversation/cut-answer")
                end = next((first for first, last in controls if last == end and first >= start), end)
            if turn.trains and start < end:
                chosen.append((start, end))
        return tuple(chosen)

    def _by_prefixes(self, text: str, hidden: Sequence[Mapping[str, Any]], tools: Any, size: int, number: int) -> Span:
        """The span of an assistant's turn, by what the template makes of the conversation up to it."""
        before = self.write(hidden[:number], tools, size, prompt=True)
        whole = self.write(hidden[: number + 1], tools, size)
        if not (text.startswith(whole) and whole.startswith(before) and len(before) < len(whole)):
            raise Refused("masks-disagree", f"turn {number + 1}")
        start, content = len(before), hidden[number]["content"]
        for first, last in reversed(self._stretches.find(whole)):
            if first >= start and not whole[last:].strip():
                return start, last
        at = whole.rfind(content, start) if content else -1
        return start, at + len(content) if at >= 0 else len(whole.rstrip())


def to_turn_end(text: str, controls: Sequence[Span], start: int, end: int) -> Span:
    """A span with the control token that ends its turn: the one behind it, or the last one in it that only white space
    follows."""
    for first, last in controls:
        if first >= start and last <= end and not text[last:end].strip():
            return start, last
        if first == end > start:
            return start, last
    return start, end


def without_marks(raw: str) -> tuple[str, list[Span]]:
    """The text without the marks of `{% generation %}`, and what stood between them.

    Raises Refused where they are not in pairs: a template may have lost one.
    """
    if Generation.open not in raw and Generation.close not in raw:
        return raw, []
    parts, spans, size = [], [], 0
    for number, part in enumerate(raw.split(Generation.open)):
        inside, closed, after = part.partition(Generation.close)
        if bool(number) != bool(closed) or Generation.close in after:
            raise Refused("turns-not-found", "marks of generation that are not in pairs")
        if number:
            spans.append((size, size + len(inside)))
        parts += [inside, after]
        size += len(inside) + len(after)
    return "".join(parts), spans
