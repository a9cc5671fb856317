"""Templates, a tokenizer and conversations for tests, and what is right of them, computed without Jinja."""

import json
from pathlib import Path
from typing import Any

from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.document import Drop, RawDocument
from refinery.transforms.core.spans.marks import marks_of
from refinery.transforms.tokenize.chat.conversations import ChatParams, load_chat, write_conversation
from tests.transforms.tokenizer_files import added, byte_level_spec

NAMES = ("<bos>", "<turn>", "<end>", "</s>", "<think>", "</think>")
TURNS = """{%- for m in messages -%}
{{- '<turn>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' -%}
{%- generation -%}{{- m.content + '<end>' -}}{%- endgeneration -%}
{%- else -%}{{- m.content + '<end>' -}}{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<turn>assistant\\n' -}}{%- endif -%}"""
WITHOUT_TAGS = TURNS.replace("{%- generation -%}", "").replace("{%- endgeneration -%}", "")
SHORT = TURNS.replace("+ '<end>' -}}{%- endgeneration -%}", "-}}{%- endgeneration -%}{{- '<end>' -}}")
# Alternating, trimmed, BOS in front, a blank that the model writes.
INST = """{{- bos_token -}}
{%- for m in messages -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('turns must alternate') -}}{%- endif -%}
{%- if m.role == 'user' -%}{{- 'Q: ' + m.content | trim + ' A:' -}}
{%- else -%}{%- generation -%}{{- ' ' + m.content | trim + eos_token -}}{%- endgeneration -%}{%- endif -%}
{%- endfor -%}"""
# Thoughts of earlier turns are left out.
THINK = """{%- for m in messages -%}
{{- '<turn>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' -%}
{%- generation -%}
{%- if loop.last or '</think>' not in m.content -%}{{- m.content -}}
{%- else -%}{{- m.content.split('</think>')[-1] -}}{%- endif -%}{{- '<end>' -}}
{%- endgeneration -%}
{%- else -%}{{- m.content + '<end>' -}}{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<turn>assistant\\n' -}}{%- endif -%}"""
THINK_WITHOUT_TAGS = THINK.replace("{%- generation -%}", "").replace("{%- endgeneration -%}", "")
TOOLS = """{%- if tools -%}{{- 'Tools:' -}}
{%- for t in tools -%}{{- '\\n' + t | tojson -}}{%- endfor -%}{{- '\\n' -}}{%- endif -%}
{%- for m in messages -%}
{{- '<turn>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' -%}
{%- generation -%}{{- m.content -}}
{%- for c in m.tool_calls or [] -%}{{- '[' + c.function.name + c.function.arguments | tojson + ']' -}}{%- endfor -%}
{{- '<end>' -}}{%- endgeneration -%}
{%- else -%}{{- m.content + '<end>' -}}{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}"""


def make_tokenizer(folder: Path, template: str) -> ChatParams:
    """The parameters for a template, with a tokenizer whose control tokens are NAMES; two of them are not special."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = byte_level_spec([("a", "n"), ("Ċ", "Ċ"), ("Ġ", "a")])
    first = len(spec["model"]["vocab"])
    spec["added_tokens"] += [added(first + n, name, "think" not in name) for n, name in enumerate(NAMES)]
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    config = {"bos_token": {"content": "<bos>"}, "eos_token": "</s>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return ChatParams(tokenizer=str(folder / "tokenizer.json"))


def judge(record: Any, params: ChatParams, chat: Any = None) -> tuple[str, list[str], tuple[str, ...]] | Drop:
    """The text, its trained parts, and what was found of a record; a Drop where it is refused."""
    content = record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
    raw = RawDocument(content, False, "", "", "s", "f@0", 0)
    answer = answer_of(write_conversation(raw, chat or load_chat(params), params))
    if isinstance(answer.result, Drop):
        return answer.result
    marks = marks_of(answer.result)
    assert marks is not None
    text = answer.result.text
    assert all(text[start:end] in NAMES for start, end in marks.controls)
    return text, [text[start:end] for start, end in marks.trained], answer.found


def turns(*contents: str, **last: Any) -> dict[str, Any]:
    """A conversation of turns that alternate, the user's first; last: keys of the last one."""
    roles = ("user", "assistant")
    messages: list[dict[str, Any]] = [
        {"role": roles[number % 2], "content": content} for number, content in enumerate(contents)
    ]
    messages[-1] |= last
    return {"messages": messages}


def of_turns(*pairs: tuple[str, str]) -> str:
    """What TURNS makes of (role, content)."""
    return "".join(f"<turn>{role}\n{content}<end>\n" for role, content in pairs)
