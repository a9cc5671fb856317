"""robots.txt and ai.txt: which agents may use which paths, and whether a model may be trained on them.

Robots Exclusion Protocol, RFC 9309; Content Signals (contentsignals.org, Cloudflare 2025): `Content-Signal:
ai-train=no`; AI preferences (IETF, draft-ietf-aipref-attach): `Content-Usage: [path] train-ai=n`; ai.txt (Spawning
2023), which has the syntax of robots.txt, with patterns of file names (`*.html`).

Why no library: protego 0.7.0, the only one that is kept up and in wide use, takes a group for every agent whose name
begins with the group's (RFC 9309 wants equal product tokens), knows no byte order mark and no group for a token with a
version, and does not say which rule decided. What a table of 10^8 hosts needs is a short form that equal files share.

The short form, in UTF-8: blocks of lines `agents: gptbot ccbot`, `allow: /x`, `disallow: /`, `train: /x`, `no-train: /`
(the signals), each sorted, agents with equal rules together; "" for a file that restricts nobody. An agent's groups are
one block. Only where that would make a form longer than MAX_MERGED, since a file gives many agents the same long group
and each of them one of its own, an agent is named in several blocks, whose rules are all its own.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refinery.transforms.rights.path_patterns import Rule, decide, parse_pattern, pattern_text

MAX_BYTES = 500 << 10  # RFC 9309, section 2.5: what a parser reads at least; the rest is not looked at
MAX_MERGED = 4 * MAX_BYTES  # characters
EVERY = "*"
MAX_TOKEN = 200

_TOKEN = re.compile(r"[^\s/,;:()]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SIGNALS = {
    **dict.fromkeys(("ai-train=no", "ai-train=n", "train-ai=n", "train-ai=no", "train-genai=n"), "no-train"),
    **dict.fromkeys(("ai-train=yes", "ai-train=y", "train-ai=y", "train-ai=yes", "train-genai=y"), "train"),
}
_SIGNAL_FIELDS = ("content-signal", "content-signals", "content-usage")


def decode(body: bytes) -> str:
    """Text of a file, UTF-8, or UTF-16 where a mark says so; of no more than MAX_BYTES, and without a half line."""
    cut = body[: MAX_BYTES + 1]
    if len(body) > MAX_BYTES:
        cut = cut[: max(cut.rfind(b"\n"), cut.rfind(b"\r"), 0)]
    if cut.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return cut.decode("utf-16", "replace")
    return cut.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def fields(text: str) -> Iterator[tuple[str, str]]:
    """(name in small letters, value) of each line that has a colon, without comments."""
    for line in _LINE_END.split(text):
        name, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def short_form(body: bytes) -> str:
    """What a file says, in the short form above. Linear in the file; never raises."""
    groups: list[set[str]] = [set()]  # lines of each; the first has the signals of no agent
    groups_of: defaultdict[str, set[int]] = defaultdict(set)  # agent -> its groups
    in_rules, has_agents = True, False
    for name, value in fields(decode(body)):
        if name == "user-agent":
            if in_rules:
                groups.append(set())
                in_rules, has_agents = False, False
            token = _TOKEN.match(value)
            if token and len(token[0]) <= MAX_TOKEN:
                has_agents = True
                groups_of[token[0].lower()].add(len(groups) - 1)  # a group without rules allows all
        elif name in ("allow", "disallow"):
            in_rules = True
            if has_agents and (pattern := pattern_text(value)):
                groups[-1].add(f"{name}: {pattern}")
        elif name in _SIGNAL_FIELDS:
            in_rules = True
            if not has_agents:
                groups_of[EVERY].add(0)
            groups[-1 if has_agents else 0].update(_signals(value))
    named = set[int]().union(*groups_of.values())
    if not any(line.startswith(("disallow", "no-train")) for number in named for line in groups[number]):
        return ""
    blocks = (
        f"agents: {' '.join(sorted(agents))}\n" + "".join(f"{line}\n" for line in lines)
        for lines, agents in _together(groups, groups_of).items()
    )
    return "".join(sorted(blocks))


def _together(groups: Sequence[set[str]], groups_of: Mapping[str, set[int]]) -> Mapping[tuple[str, ...], set[str]]:
    """Sorted lines -> agents that have them: all of an agent's lines, or each group's where that would be too much."""
    same: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for agent, own in groups_of.items():
        same[tuple(sorted(own))].append(agent)
    characters = [sum(map(len, lines)) for lines in groups]
    blocks = list(same.items())
    if sum(characters[number] for numbers in same for number in numbers) > MAX_MERGED:
        agents_of: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
        for agent, own in groups_of.items():
            for number in own:
                agents_of[(number,)].append(agent)
        blocks = list(agents_of.items())
    together: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for numbers, agents in blocks:
        together[tuple(sorted(set[str]().union(*(groups[number] for number in numbers))))].update(agents)
    return together


def _signals(value: str) -> Iterator[str]:
    """Lines for what a signal says about training; it may begin with the path that it is about."""
    pattern = "/"
    if value.startswith("/"):
        path, _, value = value.partition(" ")
        pattern = pattern_text(path)
    for signal in value.lower().split(","):
        if pattern and (word := _SIGNALS.get(re.sub(r"\s+", "", signal))):
            yield f"{word}: {pattern}"


@dataclass(frozen=True)
class Group:
    """The rules of one agent. access: who may fetch; signals: who may train."""

    access: tuple[Rule, ...]
    signals: tuple[Rule, ...]


@dataclass(frozen=True)
class AgentRules:
    """A file, ready for use: agent in small letters -> its groups, whose rules are one set."""

    groups: Mapping[str, tuple[Group, ...]]

    def refusal(self, path: str, agents: Iterable[str], every: bool, is_page: bool = False) -> str:
        """The rule by which one of `agents` (in small letters) may not use `path`, as "gptbot disallow: /x"; "" for
        none.

        every: whether an agent without a group of its own has that of all, as RFC 9309 defines; signals of that group
        are addressed to all who train and always count. is_page: whether rules for names that end in .html are about
        the page, whatever its address ends in (ai.txt).
        """
        seen: set[tuple[int, ...]] = set()
        paths = (path, f"{path.partition('?')[0]}.html") if is_page else (path,)
        common = self.groups.get(EVERY, ())
        for agent in agents:
            own = self.groups.get(agent, ())
            groups = own or (common if every else ())
            if groups and (which := tuple(map(id, groups))) not in seen:
                seen.add(which)
                access = [rule for group in groups for rule in group.access]
                refused = _first_refusal(access, paths, True) or _first_refusal(_signals_of(groups), paths, False)
                if refused:
                    return f"{agent if own else EVERY} {refused}"
        if common and tuple(map(id, common)) not in seen:
            refused = _first_refusal(_signals_of(common), paths, False)
            return f"{EVERY} {refused}" if refused else ""
        return ""


def _signals_of(groups: Iterable[Group]) -> Sequence[Rule]:
    return [rule for group in groups for rule in group.signals]


def _first_refusal(rules: Sequence[Rule], paths: Iterable[str], tie_allows: bool) -> str:
    for path in paths:
        rule = decide(rules, path, tie_allows) if rules else None
        if rule is not None and not rule.allows:
            return rule.text
    return ""


def parse_rules(text: str) -> AgentRules:
    """The rules in a short form. Cost: linear in it, and its memory."""
    groups: defaultdict[str, list[Group]] = defaultdict(list)
    for block in re.split(r"^agents: ", text, flags=re.MULTILINE)[1:]:
        agents, *lines = block.splitlines()
        access: list[Rule] = []
        signals: list[Rule] = []
        for line in lines:
            name, _, pattern = line.partition(": ")
            rule = Rule(parse_pattern(pattern), name in ("allow", "train"), line)
            (access if name in ("allow", "disallow") else signals).append(rule)
        group = Group(tuple(access), tuple(signals))
        for agent in agents.split(" "):
            groups[agent].append(group)
    return AgentRules({agent: tuple(own) for agent, own in groups.items()})
