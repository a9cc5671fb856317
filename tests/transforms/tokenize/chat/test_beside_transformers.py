"""Ids and masks beside those of transformers, which TRL's `assistant_only_loss` takes as they are, where both are
right: conversations without typed control tokens, and answers that do not share a token with their header."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.read.loss_runs import mask_of
from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.tokenize.chat.conversations import load_chat, write_conversation
from refinery.transforms.tokenize.encode_marked import MarkedParams, encode_marked, load_marked_encoder
from tests.sampling import examples
from tests.transforms.tokenize.chat.chats import INST, THINK, TURNS, make_tokenizer, turns

SPECIAL = {"bos_token": "<bos>", "eos_token": "</s>"}
TEMPLATES = {"turns": TURNS, "inst": INST, "think": THINK}
WORDS = st.lists(st.sampled_from(["an", "a", "ö", "Banana", "🍎", "1 2", "\n"]), min_size=1, max_size=5).map(" ".join)
CONTENTS = st.lists(WORDS.map(lambda text: f"x{text}."), min_size=2, max_size=6).filter(
    lambda found: len(found) % 2 == 0
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    """By name: transformers' tokenizer, and what the two stages need."""
    transformers = pytest.importorskip("transformers")
    found = {}
    for name, template in TEMPLATES.items():
        folder: Path = tmp_path_factory.mktemp(name)
        params = make_tokenizer(folder, template)
        other = transformers.PreTrainedTokenizerFast(tokenizer_file=params.tokenizer, chat_template=template, **SPECIAL)
        encoding = MarkedParams(path=params.tokenizer)
        found[name] = other, params, load_chat(params), encoding, load_marked_encoder(encoding)
    return found


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=examples(25), deadline=None)
@given(contents=CONTENTS)
def test_ids_and_masks(made: dict[str, tuple[object, ...]], name: str, contents: list[str]) -> None:
    other, params, chat, encoding, encoder = made[name]
    record = turns(*contents)
    expected = other.apply_chat_template(  # type: ignore[attr-defined]
        record["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    raw = RawDocument(json.dumps(record), False, "", "", "s", "f@0", 0)
    document = answer_of(write_conversation(raw, chat, params)).result  # type: ignore[arg-type]
    assert isinstance(document, Document)
    encoded = answer_of(encode_marked(document, encoder, encoding)).result  # type: ignore[arg-type]
    assert encoded.tokens.tolist() == expected["input_ids"]
    mask = mask_of(str(encoded.meta["trained_tokens"]), len(encoded.tokens), "")
    assert np.flatnonzero(mask).tolist() == np.flatnonzero(expected["assistant_masks"]).tolist()
