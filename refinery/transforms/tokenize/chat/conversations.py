"""The stage `chat`: records of conversations become texts by a chat template, with the characters that are trained."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from jinja2.exceptions import TemplateError
from pydantic import Field, field_validator

from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop, RawDocument, document_id
from refinery.transforms.core.params import Params
from refinery.transforms.core.spans.marks import CONTROL_SPANS, LOSS_SPANS, SPANS_OF, Marks, are_places, notes_of
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.read.task import AUTO, CHAT, SPANS
from refinery.transforms.read.task import LOSS_SPANS as GIVEN
from refinery.transforms.tokenize.chat.messages import MOST_DEPTH, Refused, parse_record, read_conversation
from refinery.transforms.tokenize.chat.probe import check_template
from refinery.transforms.tokenize.chat.render import ChatTemplate, Ends
from refinery.transforms.tokenize.chat.sandbox import TemplateLimit, TemplateRefused
from refinery.transforms.tokenize.chat.template_files import SPECIAL, read_template, template_files
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.stretches import load_stretches


class ChatParams(Params):
    """How conversations become texts, and what of them is trained."""

    tokenizer: str = ""
    """tokenizer whose template and control tokens are used; empty: that of the recipe's section `tokenizer`"""
    template: Annotated[str, Field(min_length=1)] | None = None
    """a chat template in Jinja, or a tokenizer_config.json that has one; null: `chat_template.jinja` or
    `tokenizer_config.json` beside the tokenizer"""
    special_tokens: Mapping[str, str] = {}
    """`bos_token`, `eos_token` and others by name, where tokenizer_config.json does not have them"""
    date: str | None = None
    """the date, as 2026-03-05, that a template gets which asks for today; without it such templates are refused"""
    ends: Ends = "agree"
    """whether a turn's last control token is trained: `agree` takes what `{% generation %}` says and refuses a template
    that leaves it out or goes on behind it, `turn` trains it and nothing behind it, `template` takes the template at
    its word"""
    empty_turns: Literal["drop", "context"] = "drop"
    """conversations with an assistant's turn that says nothing: `drop` them, or keep the turn untrained"""
    cut_answers: Literal["words", "whole"] = "words"
    """answers with `finish_reason: length`: their `words` are trained and their end is not, or the `whole`"""
    too_long: Literal["drop", "turns", "keep"] = "drop"
    """a conversation of more tokens than `max_tokens`: `drop` it, keep its first `turns` up to the end of the last
    answer that fits, or `keep` all of it, and shorter rows cut it inside a turn"""
    max_tokens: Annotated[int, Field(ge=2)] | None = None
    """maximum tokens of a conversation; null: those of a row of `packed`, or no limit without packed rows"""

    @field_validator("date")
    @classmethod
    def _a_date(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            raise ValueError(f"date: {text!r:.40} given, a date such as 2026-03-05 is allowed")
        if text is not None:
            datetime.date.fromisoformat(text)
        return text

    @field_validator("special_tokens")
    @classmethod
    def _known(cls, names: Mapping[str, str]) -> Mapping[str, str]:
        if unknown := sorted(set(names) - {*SPECIAL}):
            raise ValueError(f"special_tokens: {unknown[0]!r:.40} given, {', '.join(SPECIAL)} are allowed")
        return names


class SourcedParams(ChatParams):
    """With what the sources say: `content` and `text_field` of each by name."""

    sources: Mapping[str, tuple[str, str]] = {}


def complete_params(params: ChatParams, sections: Mapping[str, Any]) -> SourcedParams:
    """The parameters with the tokenizer of the recipe where they name none, and what each source holds."""
    held = {source.name: (source.content, source.text_field) for source in sections["sources"]}
    tokenizer = params.tokenizer or sections["tokenizer"].path
    return SourcedParams(**{**params.plain(), "tokenizer": tokenizer, "sources": held})


@dataclass(frozen=True)
class Chat:
    """What the stage loads. template: None where no source has conversations."""

    template: ChatTemplate | None


def sources_of(params: ChatParams) -> Mapping[str, tuple[str, str]]:
    """`content` and `text_field` of each source; none where the stage stands alone, and reads conversations."""
    return params.sources if isinstance(params, SourcedParams) else {}


def needs_template(params: ChatParams) -> bool:
    """Whether a source has conversations."""
    held = sources_of(params)
    return not held or any(content == CHAT for content, _ in held.values())


def load_chat(params: ChatParams) -> Chat:
    """The template. Raises ValueError, one line, where it is missing or cannot be used."""
    if not params.tokenizer:
        raise ValueError("tokenizer: empty, but the path of a tokenizer is needed")
    if not needs_template(params):
        return Chat(None)
    load_tokenizer(params.tokenizer)
    file = read_template(params.template, params.tokenizer, params.special_tokens)
    date = None if params.date is None else datetime.date.fromisoformat(params.date)
    try:
        template = ChatTemplate(file, load_stretches(params.tokenizer), date)
        check_template(template, params.ends)
    except ValueError as error:
        raise ValueError(f"template: {file.path}: {error}") from None
    return Chat(template)


def write_conversation(raw: RawDocument, chat: Chat, params: ChatParams) -> Document | Drop | Answer:
    """The conversation as a text with its id, and notes of what is trained in it; a Drop where there is none.

    Cost: a rendering, and two for each turn of an assistant where the template has no `{% generation %}`, all
    within one bound.
    """
    content, field = sources_of(params).get(raw.source, (CHAT, AUTO))
    record = raw.content if isinstance(raw.content, str) else raw.content.decode("utf-8", "replace")
    try:
        if content == SPANS:
            text, marks = read_spans(record, field)
            found: tuple[str, ...] = ()
        else:
            text, marks, found = _rendered(record, field, chat, params)
    except Refused as refused:
        return refused.drop
    except TemplateRefused as error:
        return Drop("template-refused", {"found": str(error)})
    except TemplateLimit:
        return Drop("template-limit")
    except TemplateError as error:
        return Drop("template-failed", {"found": " ".join(str(error).split())[:200]})
    if not marks.trained:
        return Drop("nothing-trained")
    document = Document(
        document_id(text), text, raw.url, raw.source, raw.origin, raw.position, {**raw.meta, **notes_of(text, marks)}
    )
    return Answer(document, found) if found else document


def _rendered(record: str, field: str, chat: Chat, params: ChatParams) -> tuple[str, Marks, tuple[str, ...]]:
    if chat.template is None:
        raise ValueError("a conversation given, and the recipe has no source of conversations")
    conversation = read_conversation(record, field)
    turns = conversation.turns
    if any(turn.is_assistant and turn.is_empty for turn in turns):
        if params.empty_turns == "drop":
            raise Refused("empty-turn")
        turns = [turn._replace(trains=False) if turn.is_empty else turn for turn in turns]
    if params.cut_answers == "whole":
        turns = [turn._replace(is_cut=False) for turn in turns]
    text, marks, found = chat.template.rendered(conversation._replace(turns=turns), len(record), params.ends)
    return text, marks, found


def read_spans(record: str, field: str) -> tuple[str, Marks]:
    """The text of a record and the characters of it that are trained. Raises Refused."""
    fields = parse_record(record)
    text, given = fields.get("text" if field == AUTO else field), fields.get(GIVEN)
    if not isinstance(text, str):
        raise Refused("content-not-text", type(text).__name__)
    if not isinstance(given, list):
        raise Refused("bad-spans", type(given).__name__)
    trained = tuple(map(_span, given))
    if not are_places(trained, len(text)):
        raise Refused("bad-spans", f"ascending places up to {len(text)} are needed")
    return text, Marks(trained)


def _span(given: Any) -> tuple[int, int]:
    """A pair of places: a list, or an object with `start` and `end`."""
    pair = [given.get("start"), given.get("end")] if isinstance(given, dict) else given
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(place) is int for place in pair):
        raise Refused("bad-spans", "pairs of whole numbers are needed")
    return pair[0], pair[1]


def chat_files(params: ChatParams) -> tuple[str, ...]:
    """The tokenizer and the template: their content decides the result."""
    if not needs_template(params):
        return (params.tokenizer,)
    return (params.tokenizer, *template_files(params.template, params.tokenizer))


CONVERSATIONS = Stage(
    name="chat",
    version=1,
    summary="Write conversations as texts by the tokenizer's chat template, and record what of them is trained.",
    params=ChatParams,
    judge=write_conversation,
    prepare=load_chat,
    files=chat_files,
    uses=("tokenizer", "sources"),
    complete=complete_params,
    optional=False,
    libraries=("jinja2", "tokenizers"),
    notes=(
        Note(LOSS_SPANS, str, "the characters of the text that are trained: START-END each"),
        Note(CONTROL_SPANS, str, "the characters that are control tokens, which the template wrote"),
        Note(SPANS_OF, int, "hash of the text that both are of: the encoder believes them of no other"),
    ),
    reasons=(
        Reason("not-json", "not a JSON object, or a number that JSON does not have or that is too large for a float"),
        Reason("too-deep", f"lists and objects nest more than {MOST_DEPTH} levels deep"),
        Reason("key-twice", "an object has a key twice, so its value is not known"),
        Reason("lone-surrogate", "half a pair of surrogates, which is not text"),
        Reason("private-character", "U+FDD0, U+FDD1 or U+10FE00 to U+10FFFD, which mark places here"),
        Reason("two-conversations", "`messages` and `conversations`", "name one of them as `text_field`"),
        Reason("turns-not-a-list", "the turns are not a list"),
        Reason("no-turns", "an empty list of turns, or more than 10,000"),
        Reason("turn-not-an-object", "a turn is not an object"),
        Reason("unknown-role", "a role that is not known"),
        Reason("two-roles", "`role` and `from` in one turn"),
        Reason("two-contents", "`content` and `value` in one turn"),
        Reason("content-not-text", "a content that is neither text nor a list of texts"),
        Reason("part-not-text", "a part of a content that is not text, such as an image"),
        Reason("bad-weight", "`weight` other than 0 and 1, `train` or `masked` other than true and false"),
        Reason("bad-tool-call", "a call without a name, or whose arguments are not an object"),
        Reason("calls-of-others", "calls of tools in a turn that is not the assistant's"),
        Reason("bad-tools", "descriptions of tools that are not a list of objects"),
        Reason("bad-spans", "`loss_spans` that are not ascending places of the text"),
        Reason("empty-turn", "an assistant's turn that says nothing", "`chat.empty_turns: context` keeps it untrained"),
        Reason("nothing-trained", "no character is trained: no answer, or all of them have weight 0"),
        Reason("turns-not-found", "it is not known which span of the template belongs to which turn"),
        Reason(
            "masks-disagree",
            "the template writes the beginning of a conversation in another way once it goes on",
            "put `{% generation %}` into the template",
        ),
        Reason(
            "control-tokens",
            "the template reads or changes characters that begin or end control tokens, such as `<`, so it is not "
            "known which control tokens are its own",
        ),
        Reason(
            "template-refused", "the template raises an error for the record, such as for a role that it does not know"
        ),
        Reason("template-failed", "the template fails for the record"),
        Reason(
            "template-limit",
            "the template, in all its renderings of the record, does more work than the record's size allows",
            "put `{% generation %}` into the template: such a template is rendered once",
        ),
    ),
)
