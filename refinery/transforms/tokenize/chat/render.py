"""A conversation as a text, its trained characters, and its control tokens.

Trained is what the model itself would have to write: an assistant's text, its calls, and the control token that ends
its turn. Where a template says so by `{% generation %}`, that counts. Where it does not, the text up to an assistant's
turn is rendered with the prompt for generation, and the text up to its end without: both must begin the whole text.
"""

import datetime
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from refinery.transforms.core.spans.marks import Marks, Places
from refinery.transforms.tokenize.chat.messages import Conversation, Refused, Turn
from refinery.transforms.tokenize.chat.sandbox import (
    LEAST_WORK,
    WORK_A_CHARACTER,
    Generation,
    Sandbox,
    TemplateLimit,
    render,
)
from refinery.transforms.tokenize.chat.template_files import TemplateFile
from refinery.transforms.tokenize.chat.typed import Typed
from refinery.transforms.tokenize.stretches import Stretches

Ends = Literal["agree", "template", "turn"]
Span = tuple[int, int]
# Work of all renderings of a record, as a multiple of what one of them may use: about 900 short turns by prefixes.
MOST_RENDERINGS = 16


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
        self._typed = Typed(controls, readable, file.source)

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
        writer = _Writer(self, self._typed.hide(conversation.tools), size)
        raw = writer.write(hidden)
        self._check_guards(raw, hidden, writer)
        text, tagged = without_marks(raw)
        controls = self._stretches.find(text)
        mine = [number for number, turn in enumerate(turns) if turn.is_assistant]
        if self.has_tags:
            spans = tagged
            if ends == "turn":
                spans = [to_turn_end(text, controls, start, end) for start, end in tagged]
        else:
            spans = [_by_prefixes(text, controls, hidden, writer, number) for number in mine]
        trained = self._chosen(text, spans, [(turns[n], hidden[n]) for n in mine], controls, found)
        shown = self._typed.shown(text)
        if self._typed.has_typed(text):
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
                place = bisect_left(controls, (end, 0)) - 1
                if place >= 0 and controls[place][1] == end and controls[place][0] >= start:
                    end = controls[place][0]
            if turn.trains and start < end:
                chosen.append((start, end))
        return tuple(chosen)

    def _check_guards(self, raw: str, hidden: Sequence[Mapping[str, Any]], writer: "_Writer") -> None:
        """Raises Refused where the template would make another text if it saw each character that begins or ends a
        control token: which ones are its own is not known then."""
        plain, tools = self._typed.unguarded(hidden), self._typed.unguarded(writer.tools)
        if (plain, tools) == (hidden, writer.tools):
            return
        if self._typed.shown(writer.write(plain, tools=tools)) != self._typed.shown(raw):
            raise Refused("control-tokens")

    def work(self, size: int) -> int:
        """Units that the last rendering of a record of that size has used."""
        return LEAST_WORK + WORK_A_CHARACTER * size - self._sandbox.work.left


class _Writer:
    """All renderings of a record: their work together is bounded, so that many turns do not cost the square of what one
    costs."""

    def __init__(self, template: ChatTemplate, tools: Any, size: int) -> None:
        self.tools = tools
        self._template, self._size = template, size
        self._left = MOST_RENDERINGS * (LEAST_WORK + WORK_A_CHARACTER * size)

    def write(self, turns: Sequence[Mapping[str, Any]], prompt: bool = False, tools: Any = None) -> str:
        """See `ChatTemplate.write`. Raises TemplateLimit, too, where the record has used up its work."""
        text = self._template.write(turns, self.tools if tools is None else tools, self._size, prompt)
        self._left -= self._template.work(self._size)
        if self._left < 0:
            raise TemplateLimit("more renderings than a record of this size may cost")
        return text


def _by_prefixes(
    text: str, controls: Sequence[Span], hidden: Sequence[Mapping[str, Any]], writer: _Writer, number: int
) -> Span:
    """The span of an assistant's turn, by what the template makes of the conversation up to it."""
    before = writer.write(hidden[:number], prompt=True)
    whole = writer.write(hidden[: number + 1]) if number + 1 < len(hidden) else text
    if not (text.startswith(whole) and whole.startswith(before) and len(before) < len(whole)):
        raise Refused("masks-disagree", f"turn {number + 1}")
    start, content = len(before), hidden[number]["content"]
    last = bisect_left(controls, (len(whole), 0)) - 1  # the last control token that begins in it
    if last >= 0 and controls[last][0] >= start and not whole[controls[last][1] :].strip():
        return start, min(controls[last][1], len(whole))
    at = whole.rfind(content, start) if content else -1
    return start, at + len(content) if at >= 0 else start + len(whole[start:].rstrip())


def to_turn_end(text: str, controls: Sequence[Span], start: int, end: int) -> Span:
    """A span with the control token that ends its turn: the one behind it, or the last one in it that only white space
    follows."""
    written = start + len(text[start:end].rstrip())
    for place in range(bisect_left(controls, (start, 0)), len(controls)):
        first, last = controls[place]
        if first > end:
            break
        if written <= last <= end or first == end > start:
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
