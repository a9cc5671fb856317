"""What the two stages of conversations make of fixed records, for tests/golden.py; no folder's name is in it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.tokenize.chat.conversations import CONVERSATIONS
from refinery.transforms.tokenize.encode_marked import MarkedParams
from tests.transforms.tokenize.chat.chats import INST, THINK, TOOLS, TURNS, WITHOUT_TAGS, make_tokenizer, turns

RECORDS = [
    turns("Hi.", "Hello.", "x<end> <en", "\n\nYes.", "And?"),
    turns("a", "<think>b</think>c", "d", "ö 🍎"),
    turns("a", "b", "c", "", weight=0),
    turns("a", "word", finish_reason="length"),
    {"conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "!"}]},
    {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]},
    {"messages": []},
]


def chat_answers(folder: Path) -> Iterator[tuple[Any, str]]:
    """The answers of the stage `chat`, and the tokenizer's path."""
    for number, template in enumerate((TURNS, WITHOUT_TAGS, INST, THINK, TOOLS)):
        params = make_tokenizer(folder / str(number), template)
        assert CONVERSATIONS.prepare is not None and CONVERSATIONS.judge is not None
        chat = CONVERSATIONS.prepare(params)
        for place, record in enumerate(RECORDS):
            raw = RawDocument(json.dumps(record), False, "", "u", "s", f"f@{place}", place)
            for more in ({}, {"empty_turns": "context", "cut_answers": "whole"}):
                yield CONVERSATIONS.judge(raw, chat, params.replace(**more)), params.tokenizer


def chat_outputs(stage: Any, folder: Path) -> Iterator[Any]:
    return (answer for answer, _ in chat_answers(folder))


def encode_masked_outputs(stage: Any, folder: Path) -> Iterator[Any]:
    """Tokens, and the notes with the masks."""
    for answer, tokenizer in list(chat_answers(folder)):
        document = answer_of(answer).result
        if not isinstance(document, Document):
            continue
        for more in ({}, {"max_tokens": 12, "too_long": "turns"}):
            params = MarkedParams(path=tokenizer, **more)
            encoded = stage.judge(document, stage.prepare(params), params=params)
            yield encoded
            yield dict(getattr(answer_of(encoded).result, "meta", {}))
        moved = replace(document, text=document.text + ".")
        try:
            yield stage.judge(moved, stage.prepare(params), params=params)
        except ValueError as error:
            yield ["dead", type(error).__name__]
