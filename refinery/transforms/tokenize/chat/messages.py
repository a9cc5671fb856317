"""From a record of JSON to messages in one form: roles of a closed list, contents that are texts, calls with objects.

Two forms are read: `messages` of OpenAI (role, content, tool_calls) and `conversations` of ShareGPT (from, value). What
cannot be read as one of them is refused by name, so one record costs one record.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from refinery.transforms.core.document import Drop
from refinery.transforms.read.task import AUTO, TURNS

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "tool_response": "tool",
    "function": "tool",
    "observation": "tool",
}
ASSISTANT = "assistant"
# Keys of a message that say how it is trained, and that no template sees.
DIRECTIONS = ("weight", "train", "masked", "finish_reason")
REASONING = ("reasoning_content", "reasoning", "thinking")
MOST_TURNS = 10_000
MOST_DEPTH = 100  # of lists and objects in each other, in a record and in each JSON text in it


class Refused(ValueError):
    """A record that makes no conversation. drop: the answer."""

    def __init__(self, reason: str, said: str = "") -> None:
        super().__init__(reason)
        self.drop = Drop(reason, {"found": said} if said else {})


class Turn(NamedTuple):
    """A message as a template gets it, and what its record says of training. trains: of an assistant's turn. is_cut:
    whether the generation of it ran into its limit. is_empty: whether it says nothing."""

    message: dict[str, Any]
    trains: bool
    is_cut: bool
    is_empty: bool

    @property
    def is_assistant(self) -> bool:
        return bool(self.message["role"] == ASSISTANT)


class Conversation(NamedTuple):
    """turns: in order. tools: what the template gets as `tools`, None for none."""

    turns: list[Turn]
    tools: list[Any] | None


def read_conversation(text: str, field: str = AUTO) -> Conversation:
    """The conversation in a record. field: that of the turns, where the source names one. Raises Refused."""
    record = parse_record(text)
    named = [name for name in TURNS if record.get(name) is not None] if field == AUTO else [field]
    if len(named) > 1:
        raise Refused("two-conversations", " ".join(named))
    listed = record.get(named[0]) if named else None
    if not isinstance(listed, list):
        raise Refused("turns-not-a-list", type(listed).__name__)
    if not 0 < len(listed) <= MOST_TURNS:
        raise Refused("no-turns", str(len(listed)))
    turns = [read_turn(each) for each in listed]
    if isinstance(system := record.get("system"), str) and system and turns[0].message["role"] != "system":
        turns.insert(0, read_turn({"role": "system", "content": system}))
    last = turns[-1]
    if record.get("finish_reason") == "length" and last.is_assistant:
        turns[-1] = last._replace(is_cut=True)
    if not trains(record):
        turns = [turn._replace(trains=False) for turn in turns]
    return Conversation(turns, read_tools(record))


def parse_record(text: str) -> dict[str, Any]:
    """The object in a text. Raises Refused as `parse_json`, and for another value."""
    record = parse_json(text)
    if not isinstance(record, dict):
        raise Refused("not-json")
    return record


def parse_json(text: str) -> Any:
    """A value of JSON. Raises Refused for a key that is there twice, a number that JSON does not have or that is too
    large for a float, a text with half a pair of surrogates, and a value that nests too deep."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise Refused("too-deep") from None
    except ValueError as error:
        if isinstance(error, Refused):
            raise
        raise Refused("not-json") from None
    _check(value, "\\u" in text)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("key-twice")
    return found


def _no_constant(name: str) -> None:
    raise Refused("not-json", name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Refused("not-json", f"{digits:.40}")
    return number


def _check(value: Any, is_escaped: bool, depth: int = 0) -> None:
    """Raises Refused for a value of more than MOST_DEPTH levels, and where is_escaped for half a pair of surrogates."""
    if isinstance(value, str):
        if is_escaped:
            _check_surrogates(value)
    elif isinstance(value, (dict, list)):
        if depth == MOST_DEPTH:
            raise Refused("too-deep", f"more than {MOST_DEPTH} levels")
        for inner in value:
            _check(inner, is_escaped, depth + 1)
        for inner in value.values() if isinstance(value, dict) else ():
            _check(inner, is_escaped, depth + 1)


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("lone-surrogate") from None


def trains(given: Mapping[str, Any]) -> bool:
    """Whether a record or a message may be trained: `weight: 0`, `train: false` and `masked: true` say no."""
    weight, train, masked = given.get("weight"), given.get("train"), given.get("masked")
    if weight is not None and (isinstance(weight, bool) or weight not in (0, 1)):
        raise Refused("bad-weight", f"{weight!r:.40}")
    for name, value in (("train", train), ("masked", masked)):
        if value is not None and not isinstance(value, bool):
            raise Refused("bad-weight", f"{name} {value!r:.40}")
    return weight != 0 and train is not False and masked is not True


def read_turn(given: Any) -> Turn:
    """A message. Raises Refused."""
    if not isinstance(given, dict):
        raise Refused("turn-not-an-object", type(given).__name__)
    said = {name: value for name, value in given.items() if value is not None}
    if "role" in said and "from" in said:
        raise Refused("two-roles")
    role = said.pop("role", said.pop("from", None))
    if not isinstance(role, str) or role not in ROLES:
        raise Refused("unknown-role", f"{role!r:.40}")
    if "content" in said and "value" in said:
        raise Refused("two-contents")
    content = read_content(said.pop("content", said.pop("value", None)))
    is_trained, is_cut = trains(said), said.get("finish_reason") == "length"
    message = {name: value for name, value in said.items() if name not in DIRECTIONS}
    calls = read_calls(message.pop("tool_calls", None))
    if calls and ROLES[role] != ASSISTANT:
        raise Refused("calls-of-others", ROLES[role])
    message = {"role": ROLES[role], "content": content, **message, **({"tool_calls": calls} if calls else {})}
    thinks = any(message.get(name) for name in REASONING)
    is_empty = not content.strip() and not calls and not thinks
    return Turn(message, is_trained and ROLES[role] == ASSISTANT, is_cut, is_empty)


def read_content(given: Any) -> str:
    """A content as a text: null is an empty one, and a list of text parts is their texts with nothing between."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise Refused("content-not-text", type(given).__name__)
    texts = []
    for part in given:
        text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else part
        if not isinstance(text, str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise Refused("part-not-text", f"{kind!r:.40}")
        texts.append(text)
    return "".join(texts)


def read_calls(given: Any) -> list[dict[str, Any]]:
    """Calls of tools, whose arguments become objects where they are JSON in a text, as OpenAI writes them."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise Refused("bad-tool-call", type(given).__name__)
    calls = []
    for call in given:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Refused("bad-tool-call", "no function with a name")
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            arguments = parse_record(arguments) if arguments.strip() else {}
        if not isinstance(arguments, dict):
            raise Refused("bad-tool-call", f"arguments of type {type(arguments).__name__}")
        own = {name: value for name, value in call.items() if name not in ("function", "name", "arguments")}
        calls.append({"type": "function", **own, "function": {**function, "arguments": arguments}})
    return calls


def read_tools(record: Mapping[str, Any]) -> list[Any] | None:
    """The descriptions of tools of a record: a list of objects, or JSON of one in a text."""
    tools = record.get("tools", record.get("functions"))
    if isinstance(tools, str) and tools.strip():
        try:
            tools = parse_json(tools)
        except Refused as refused:
            if refused.drop.reason == "not-json":
                raise Refused("bad-tools", "not JSON") from None
            raise
    if not tools:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise Refused("bad-tools", type(tools).__name__)
    return tools
