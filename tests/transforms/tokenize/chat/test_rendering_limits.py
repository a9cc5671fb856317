"""The stage `chat`: work of many renderings, texts that a template changes into control tokens, and JSON in texts."""

from pathlib import Path

from refinery.transforms.core.document import Drop
from refinery.transforms.tokenize.chat.conversations import load_chat
from refinery.transforms.tokenize.chat.sandbox import LEAST_WORK
from tests.transforms.tokenize.chat.chats import TURNS, WITHOUT_TAGS, judge, make_tokenizer, turns


def test_all_renderings_of_a_record_share_one_bound(tmp_path: Path) -> None:
    params = make_tokenizer(tmp_path / "prefixes", WITHOUT_TAGS)
    chat = load_chat(params)
    many = [f"turn {number}" for number in range(200)]
    found = judge(turns(*many), params, chat)
    assert not isinstance(found, Drop) and found[1] == [f"{said}<end>" for said in many[1::2]]
    # Each rendering alone stays below its bound, and a template with {% generation %} is rendered once.
    costly = "{%- for a in range(100) -%}{%- for b in range(900) -%}{%- endfor -%}{%- endfor -%}"
    assert LEAST_WORK > 64 * 100 * 900 * 2
    dear = make_tokenizer(tmp_path / "dear", costly + WITHOUT_TAGS)
    assert judge(turns(*many[:20]), dear) != Drop("template-limit")
    assert judge(turns(*many), dear) == Drop("template-limit")
    tagged = judge(turns(*many), make_tokenizer(tmp_path / "tagged", costly + TURNS))
    assert not isinstance(tagged, Drop) and tagged[1] == found[1]
