"""What is wrong with a chat template, seen from a conversation of two turns before anything runs."""

from jinja2.exceptions import TemplateError

from refinery.transforms.tokenize.chat.messages import Conversation, Refused, read_turn
from refinery.transforms.tokenize.chat.render import ChatTemplate, Ends, to_turn_end, without_marks
from refinery.transforms.tokenize.chat.sandbox import TemplateLimit, TemplateRefused

QUESTION, ANSWER = "Is it late?", "Yes, it is."
SIZE = 100


def check_template(template: ChatTemplate, ends: Ends) -> None:
    """Raises ValueError, one line, for a template that no conversation can be written by, whose trained spans are
    those of a header, or never have the end of a turn where the recipe does not say so."""
    user, answer = ({"role": role, "content": text} for role, text in (("user", QUESTION), ("assistant", ANSWER)))
    system = {"role": "system", "content": "Answer."}
    try:
        try:
            turns = [user, answer]
            raw = template.write(turns, None, SIZE)
        except TemplateRefused:  # it asks for a system message
            turns = [system, user, answer]
            raw = template.write(turns, None, SIZE)
        text, tagged = without_marks(raw)
        before, _ = without_marks(template.write(turns[:-1], None, SIZE, prompt=True))
        none, _ = without_marks(template.write(turns[:-1], None, SIZE))
        again, _ = without_marks(template.write([*turns[:-1], {**answer, "content": "No."}], None, SIZE))
    except (TemplateRefused, TemplateLimit, TemplateError, Refused) as error:
        raise ValueError(_failed(error)) from None
    same = next((at for at, (a, b) in enumerate(zip(text, again, strict=False)) if a != b), len(text))
    if ANSWER.strip() not in text or same == len(text):
        raise ValueError("the text that it makes of an answer does not have the answer")
    has_prompt = text.startswith(before) and len(before) <= same
    if template.has_tags:
        _check_tags(template, text, tagged, len(before) if has_prompt else 0, ends)
    elif not has_prompt or (before == none and any(letter.isalpha() for letter in text[len(before) : same])):
        raise ValueError(
            "it has no {% generation %}, and with add_generation_prompt it does not write what stands before an "
            "answer, so the trained tokens are not known: put {% generation %} around what the assistant writes"
        )
    try:
        template.rendered(Conversation([read_turn(turn) for turn in turns], None), SIZE, ends)
    except (TemplateRefused, TemplateLimit, TemplateError, Refused) as error:
        raise ValueError(_failed(error)) from None


def _failed(error: Exception) -> str:
    return f"a conversation of a question and an answer fails: {type(error).__name__}: {error}"


def _check_tags(template: ChatTemplate, text: str, tagged: list[tuple[int, int]], header: int, ends: Ends) -> None:
    if not any(start < end and ANSWER in text[start:end] for start, end in tagged):
        raise ValueError("its {% generation %} does not hold the assistant's answer")
    start, end = next((start, end) for start, end in tagged if ANSWER in text[start:end])
    if start < header:
        raise ValueError("its {% generation %} begins inside the header, which no model has to write")
    _, right = to_turn_end(text, template.controls(text), start, end)
    if right == end or ends != "agree":
        return
    if right > end:
        raise ValueError(
            f"its {{% generation %}} leaves the end of the turn out (ends trained: 0 of 1), {text[end:right]!r:.40}, "
            "so no model would learn to stop: set `chat.ends` to `turn` to train it, or to `template` to take the "
            "template at its word"
        )
    raise ValueError(
        f"its {{% generation %}} goes on after the end of the turn, by {text[right:end]!r:.40}, which no model has to "
        "write: set `chat.ends` to `turn` to leave that out, or to `template` to take the template at its word"
    )
