"""What a chat template may do: its work is counted, and its texts are the same on every machine."""

import datetime
from typing import Any

import pytest
from jinja2.exceptions import TemplateError

from refinery.transforms.tokenize.chat import sandbox as sandbox_module
from refinery.transforms.tokenize.chat.sandbox import LEAST_WORK, Sandbox, TemplateLimit, TemplateRefused, render

CHATML = """{%- if messages[0].role == 'system' -%}
{%- set rest = messages[1:] -%}{%- else -%}{%- set rest = messages -%}
{%- endif -%}
{%- for m in rest -%}
{%- if m.role not in ['user', 'assistant', 'tool'] -%}{{- raise_exception('role') -}}{%- endif -%}
{%- if m.role == 'assistant' and m.tool_calls is defined and m.tool_calls is not none -%}
{%- for c in m.tool_calls -%}{{- c.function.arguments | tojson -}}{%- endfor -%}{%- endif -%}
{{- '<turn>' + m.role + '\\n' + m['content'] | trim + '<end>' ~ ('' if loop.last else '\\n') -}}
{%- if loop.index0 == messages | length - 1 or m.content.startswith('<x>') -%}{{- '!' -}}{%- endif -%}
{%- endfor -%}"""


def rendered(source: str, size: int = 0, date: datetime.date | None = None, **variables: Any) -> str:
    sandbox = Sandbox(date)
    return render(sandbox, sandbox.compiled(source), size, variables)


def doubled(levels: int, use: str, made: str = "[{0},{0}]") -> str:
    """A template that uses two values which hold themselves twice, on so many levels."""
    sets = "".join("{% set ns." + name + "=" + made.format("ns." + name) + " %}" for name in "xy")
    loop = "{% for i in range(" + str(levels) + ") %}" + sets + "{% endfor %}"
    return "{% set ns=namespace(x=" + made.format(1) + ",y=" + made.format(1) + ") %}" + loop + use


def repeated(value: str, use: str, times: int = 50000) -> str:
    return "{% set l=" + value + " %}{% for i in range(" + str(times) + ") %}" + use + "{% endfor %}"


LISTED, JOINED = "range(99999)|list", "range(99999)|join"
TUPLE = "({0},{0})"
UNBOUNDED = {
    "tojson": doubled(22, "{{ ns.x|tojson|length }}"),
    "printed": doubled(60, "{{ ns.x }}"),
    "string": doubled(60, "{{ ns.x|string|length }}"),
    "a dict": doubled(60, "{{ ns.x }}", "{{'a':{0},'b':{0}}}"),
    "joined by ~": doubled(60, "{{ (ns.x ~ '')|length }}"),
    "join": doubled(60, "{{ [ns.x]|join }}"),
    "safe": doubled(60, "{{ ns.x|safe }}"),
    "replace": doubled(60, "{{ ns.x|replace('a', 'b') }}"),
    "is upper": doubled(60, "{{ ns.x is upper }}"),
    "raise_exception": doubled(60, "{{ raise_exception(ns.x) }}"),
    "% of a list": doubled(60, "{{ '%s' % [ns.x] }}"),
    "escape": doubled(60, "{{ ('x'|safe + ns.x|e)|length }}"),
    "==": doubled(40, "{{ ns.x == ns.y }}"),
    "is eq": doubled(40, "{{ ns.x is eq ns.y }}"),
    ">": doubled(40, "{{ ns.x > ns.y }}"),
    "a chain of comparisons": doubled(40, "{{ 1 < 2 != ns.x == ns.y }}"),
    "in": doubled(40, "{{ ns.x in [ns.y] }}"),
    "is in": doubled(40, "{{ ns.x is in [ns.y] }}"),
    "select": doubled(40, "{{ [ns.x]|select('eq', ns.y)|list|length }}"),
    "sort": doubled(40, "{{ [ns.y,ns.x]|sort|length }}"),
    "sort by an attribute": doubled(40, "{{ [{'a':ns.y},{'a':ns.x}]|sort(attribute='a')|length }}"),
    "sort of namespaces": doubled(40, "{{ [namespace(a=ns.y),namespace(a=ns.x)]|sort(attribute='a')|length }}"),
    "min": doubled(40, "{{ ([ns.y,ns.x]|min)|length }}"),
    "index": doubled(40, "{{ [ns.y].index(ns.x) }}"),
    "a key of a dict": doubled(40, "{{ {ns.x:1}|length }}", TUPLE),
    "a subscript": doubled(40, "{{ {}[ns.x] }}", TUPLE),
    "get": doubled(40, "{{ {}.get(ns.x) }}", TUPLE),
    "in a dict": doubled(40, "{{ ns.x in {} }}", TUPLE),
    "loop.changed": doubled(40, "{% for i in [ns.x, ns.y] %}{{ loop.changed(i) }}{% endfor %}"),
    "slices": repeated(LISTED, "{% set b = l[1:] %}"),
    "slices of a text": repeated(JOINED, "{% set b = l[::-1] %}"),
    "slices that are kept": "{% set ns=namespace(x=[]) %}" + repeated(JOINED, "{% set ns.x=[l[1:], ns.x] %}"),
    "in a list": repeated(LISTED, "{% if 'a' in l %}{% endif %}"),
    "in a text": repeated(JOINED, "{% if 'zz' in l %}{% endif %}"),
    "find": repeated(JOINED, "{% set b = l.find('zz') %}"),
    "count of a list": repeated(LISTED, "{% set b = l.count('zz') %}"),
    "text is upper": repeated(JOINED, "{% set b = l is upper %}"),
    "a select that finds nothing": repeated("[0, 0, 0, 0, 0, 0, 0, 0]", "{% set b = l|select|first %}"),
    "a body of expressions": repeated("1", "{% set b = [" + "1," * 5000 + "] %}"),
    "a macro of expressions": "{% macro m() %}{% set b = ["
    + "1," * 5000
    + "] %}{% endmacro %}"
    + repeated("1", "{{ m() }}"),
    "a loop that calls itself": "{% for a in [[1]] recursive %}{{ loop([[1]]*1) if 0 }}"
    "{% for b in range(99999) %}{% endfor %}{{ loop(range(9)|map('list')) if 0 else loop([[1],[1]]) }}{% endfor %}",
    "a width": "{{ ('%(a)3000000000d' % {'a':3})|length }}",
    "a width in a test": "{{ '%3000000000d' is odd }}",
    "a precision": "{{ '%.3000000000f' % 1 }}",
    "a width that is a value": "{{ '%*d' % (3000000000, 1) }}",
    "digits of round": "{{ 1|round(-4000000000) }}",
    "integers that grow": "{% set ns=namespace(x=1) %}{% for i in range(99999) %}{% set ns.x=ns.x+ns.x %}{% endfor %}",
    "powers": "{{ 2 ** 64 }}",
    "powers of powers": "{{ 9 ** 9 ** 9 ** 9 }}",
    "products": "{{ 9000000000 * 9000000000 }}",
    "integers of a text": "{{ ('9' ~ '0000000000' ~ '0000000000')|int }}",
    "texts times": "{{ 'a' * 9 }}",
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_work_without_bound_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "LEAST_WORK", 1 << 20)  # a sixteenth, so that the test costs less
    with pytest.raises(TemplateError if name == "a width in a test" else TemplateLimit):
        rendered(UNBOUNDED[name])


def test_a_refused_template_has_used_its_budget_and_little_more() -> None:
    for name in ("tojson", "slices of a text", "=="):
        sandbox = Sandbox(None)
        with pytest.raises(TemplateLimit):
            render(sandbox, sandbox.compiled(UNBOUNDED[name]), 0, {})
        assert -LEAST_WORK < sandbox.work.left < 0


@pytest.mark.parametrize("turns", [2, 2000])
def test_a_usual_template_is_far_below_its_bound(turns: int) -> None:
    messages = [{"role": ("user", "assistant")[n % 2], "content": f" Word {n}. "} for n in range(turns)]
    size = sum(len(str(each)) for each in messages)
    text = rendered(CHATML, size, messages=messages)
    parts = [f"<turn>{each['role']}\n{each['content'].strip()}<end>" for each in messages]
    assert text == "\n".join(parts[:-1]) + ("\n" if turns > 1 else "") + parts[-1] + "!"


def test_work_in_a_loop_over_many_turns_that_is_a_length_or_a_rest() -> None:
    messages = [{"role": "user", "content": "Some words of a turn."} for _ in range(10_000)]
    source = (
        "{% for m in messages %}{% if messages|length > loop.index %}{% set rest = messages[loop.index:] %}{% endif %}"
        "{% if m is defined and messages is not none and m.content == '' %}{{ 1 }}{% endif %}{% endfor %}"
    )
    assert rendered(source, sum(len(str(each)) for each in messages), messages=messages) == ""


SAME = {
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in 'ab' }} {{ 'c' not in ['a'] }} {{ 2 >= 2 != 3 }}": (
        "True False True True True"
    ),
    "{{ gone == gone }} {{ gone is defined }} {{ 'a' in gone }} {{ gone == 1 }}": "True False False False",
    "{{ 'abcdef'[1:4] }} {{ 'abc'[::-1] }} {{ [1,2,3][:-1] }} {{ (1,2,3)[1:] }} {{ 'abcd'[::2] }}": (
        "bcd cba [1, 2] (2, 3) ac"
    ),
    "{{ '%s is %d, %(a)s'[:9] % ('a', 3) }} {{ '%(a)s %(b)d' % {'a': 'x', 'b': 2} }} {{ '%r%%' % 'a' }}": (
        "a is 3, x 2 'a'%"
    ),
    "{{ 7 // 2 }} {{ 7 % 4 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 - 3 }} {{ 1.5 * 2 }} {{ 1e300 * 1e300 }}": (
        "3 3 3.5 1024 -1 3.0 inf"
    ),
    "{{ {'b': 1, 'a': (1, 2)}|dictsort }} {{ [3, 1]|sort }} {{ ['a', 'A', 'b']|unique|list }}": (
        "[('a', (1, 2)), ('b', 1)] [1, 3] ['a', 'b']"
    ),
    "{{ [1, 2]|map('string')|join('-') }} {{ ' a '|trim }} {{ 'a\\nb'|indent(2) }} {{ 'aab'|replace('a', 'cc') }}": (
        "1-2 a a\n  b ccccb"
    ),
    "{{ range(3) }} {{ none }} {{ gone }}|{{ [1] ~ 'a' }} {{ {1: 'a'}.items()|list }}": (
        "range(0, 3) None |[1]a [(1, 'a')]"
    ),
    "{{ {'a': [1]}|tojson }} {{ {'a': 1}|tojson(indent=1) }}": '{"a": [1]} {\n "a": 1\n}',
    "{% for a in [1, [2]] recursive %}{{ a if a is number else loop(a) }}{% endfor %}": "12",
    "{% macro m(a) %}({{ a }}{{ caller() if caller }}){% endmacro %}{{ m(1) }}{% call m(2) %}x{% endcall %}": "(1)(2x)",
    "{% block b %}c{% endblock %}{{ self.b() }}": "cc",
}


@pytest.mark.parametrize("source", SAME)
def test_what_is_counted_means_the_same(source: str) -> None:
    assert rendered(source) == SAME[source]


@pytest.mark.parametrize("source", ["{{ gone < 1 }}", "{{ gone + 1 }}", "{{ gone[1:] }}", "{{ 1 < 'a' }}"])
def test_operators_of_what_is_not_there_fail(source: str) -> None:
    with pytest.raises(TemplateError):
        rendered(source)


OF_A_MACHINE = [
    "{{ namespace }}", "{{ namespace(a=1) }}", "{{ self }}", "{{ range }}", "{{ [namespace()] }}", "{{ {'a': dict} }}",
    "{{ namespace() ~ '' }}", "{{ namespace()|string }}", "{{ [raise_exception]|join }}", "{{ dict|upper }}",
    "{{ '%s' % namespace() }}",
    "{{ [1]|map('string') }}", "{{ {}.items() }}", "{{ ''.join }}", "{{ namespace is lower }}",
    "{% macro m() %}{% endmacro %}{{ m }}", "{{ 'a'|safe ~ namespace() }}", "{{ {}.fromkeys([1]) }}",
    "{{ {'a': 1}.keys() - {} }}", "{{ [].append(1) }}", "{{ {}.keys().mapping }}", "{{ raise_exception(namespace()) }}",
    "{{ ('a'|safe).escape(namespace()) }}",
]  # fmt: skip


@pytest.mark.parametrize("source", OF_A_MACHINE)
def test_no_text_has_an_address(source: str) -> None:
    try:
        assert rendered(source) == ""
    except (TemplateError, TemplateLimit) as error:
        assert not isinstance(error, TemplateRefused)
        assert "0x" not in str(error) and "\n" not in str(error)


def test_a_date_is_english_and_of_no_time_zone() -> None:
    day = datetime.date(2026, 3, 5)
    form = "%Y %m %d %B %b %A %a %H %M %S %j %y %e %-d %-m %%"
    said = "2026 03 05 March Mar Thursday Thu 00 00 00 064 26  5 5 3 %"
    assert rendered("{{ strftime_now('" + form + "') }}", date=day) == said
    for other in ("%c", "%s", "%Z", "%-H", "%", "%-", "%9999d"):
        with pytest.raises(TemplateError) as raised:
            rendered("{{ strftime_now('" + other + "') }}", date=day)
        assert "\n" not in str(raised.value)
    with pytest.raises(TemplateError):
        rendered("{{ strftime_now(1) }}", date=day)


NOT_COMPILED = {
    "nested loops": "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "a long integer": "{{ " + "9" * 5000 + " }}",
    "a large integer": "{{ 0x" + "f" * 5000 + " }}",
    "break outside a loop": "{% break %}",
    "no end": "{% for a in b %}",
}


@pytest.mark.parametrize("name", NOT_COMPILED)
def test_what_cannot_be_compiled_is_said_in_a_line(name: str) -> None:
    with pytest.raises(ValueError) as raised:
        rendered(NOT_COMPILED[name])
    assert type(raised.value) is ValueError
    assert str(raised.value) and "\n" not in str(raised.value)
