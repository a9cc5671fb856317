"""The stage `chat`: work of many renderings, texts that a template changes into control tokens, and JSON in texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from refinery.transforms.core.document import Drop
from refinery.transforms.tokenize.chat.conversations import CONVERSATIONS, ChatParams, load_chat
from refinery.transforms.tokenize.chat.messages import read_conversation
from refinery.transforms.tokenize.chat.sandbox import LEAST_WORK
from tests.transforms.tokenize.chat.chats import (
    THINK,
    TOOLS,
    TURNS,
    WITHOUT_TAGS,
    judge,
    make_tokenizer,
    of_turns,
    turns,
)


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


# What a template does to a text, what is typed, and what stands in the text then; None where the record is refused.
CHANGED: dict[str, tuple[str, str, str | None]] = {
    "small letters": ("m.content | lower", "a<END>b", "a<end>b"),
    "blanks taken out": ("m.content | replace(' ', '')", "a< end>b", "a<end>b"),
    "carriage returns taken out": ("m.content | replace('\\r', '')", "a<en\rd>b", "a<end>b"),
    "what begins a token is written by the template": ("m.content.replace('&lt;', '<')", "a&lt;end>b", "a<end>b"),
    "white space taken from a border": ("'<' + m.content | trim", " end>", "<end>"),
    "a text is cut at <": ("m.content.split('<')[0]", "a<b", None),
    "a text without < is cut at it": ("m.content.split('<')[0]", "a b", "a b"),
    "a test that says no": ("('yes' if m.content.startswith('<b') else m.content)", "a <b>", "a <b>"),
    "a test that says yes": ("('yes' if m.content.startswith('<b') else m.content)", "<b>", None),
    "escaped": ("m.content | e", "a < b", None),
}


@pytest.mark.parametrize("template", [TURNS, WITHOUT_TAGS])
@pytest.mark.parametrize("name", CHANGED)
def test_no_text_that_a_template_changes_becomes_a_control_token(tmp_path: Path, name: str, template: str) -> None:
    changed, typed, said = CHANGED[name]
    before, _, after = template.rpartition("{{- m.content")  # of a turn that is not the assistant's
    params = make_tokenizer(tmp_path, before + "{{- (" + changed + ")" + after)
    record = turns(typed, "Yes <b>.")
    found = judge(record, params)
    if said is None:
        assert found == Drop("control-tokens")
        return
    assert not isinstance(found, Drop)
    assert found[:2] == (of_turns(("user", said), ("assistant", "Yes <b>.")), ["Yes <b>.<end>"])
    assert controls(record, params) == ["<turn>", "<end>"] * 2


def controls(record: dict[str, Any], params: ChatParams) -> list[str]:
    """The control tokens of a conversation."""
    made = load_chat(params).template
    assert made is not None
    text, marks, _ = made.rendered(read_conversation(json.dumps(record)), 100, "agree")
    return [text[start:end] for start, end in marks.controls]


def test_tags_that_a_template_names_are_read_in_answers(tmp_path: Path) -> None:
    """They need not be control tokens; angle brackets of others stay what they are."""
    params = make_tokenizer(tmp_path, THINK.replace("</think>", "</why>"))
    found = judge(turns("a < b?", "<why>c</why>d<e>", "g", "<why>h</why>i"), params)
    assert not isinstance(found, Drop)
    assert found[1:] == (["d<e><end>", "<why>h</why>i<end>"], ("conversation/changed-by-template",))
    assert "control-tokens" in {each.name for each in CONVERSATIONS.reasons}


def _call(arguments: str) -> dict[str, Any]:
    return turns("a", "", tool_calls=[{"function": {"name": "f", "arguments": arguments}}])


def _nested(levels: int) -> str:
    return '{"a": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


IN_TEXTS: dict[str, tuple[Any, str]] = {
    "arguments that nest deep": (_call(_nested(101)), "too-deep"),
    "arguments that nest too deep for the parser": (_call(_nested(100_000)), "too-deep"),
    "tools that nest deep": ({**turns("a", "b"), "tools": "[" + _nested(600) + "]"}, "too-deep"),
    "a record that nests deep": (json.dumps(turns("a", "b"))[:-1] + ', "x": ' + _nested(600) + "}", "too-deep"),
    "tools with half a surrogate": ({**turns("a", "b"), "tools": '[{"name": "\\ud800"}]'}, "lone-surrogate"),
    "arguments with half a surrogate": (_call('{"\\udc00": 1}'), "lone-surrogate"),
    "tools with a key twice": ({**turns("a", "b"), "tools": '[{"a": 1, "a": 2}]'}, "key-twice"),
    "tools that are no JSON": ({**turns("a", "b"), "tools": "[{"}, "bad-tools"),
    "tools with a number that is too large": ({**turns("a", "b"), "tools": '[{"a": -1e999}]'}, "bad-tools"),
    "arguments with a number that is too large": (_call('{"a": 1e999}'), "not-json"),
    "a record with a number that is too large": ('{"messages": [], "x": 1e999}', "not-json"),
}


@pytest.mark.parametrize("name", IN_TEXTS)
def test_json_in_texts_is_refused_by_name(tmp_path: Path, name: str) -> None:
    record, reason = IN_TEXTS[name]
    assert judge(record, make_tokenizer(tmp_path, TOOLS)) == Drop(reason)
    assert reason in {each.name for each in CONVERSATIONS.reasons}


def test_json_in_texts_up_to_the_limits_is_written(tmp_path: Path) -> None:
    for arguments in (_nested(100), '{"a": 1e308, "\\ud83d\\ude00": 0.5}'):
        found = judge(_call(arguments), make_tokenizer(tmp_path, TOOLS))
        assert not isinstance(found, Drop)
        assert found[1] == [f"[f{json.dumps(json.loads(arguments), ensure_ascii=False)}]<end>"]
