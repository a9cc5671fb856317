"""Rules against Python's own evaluation, against pyarrow's SQL logic, and against any text at all."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.transforms.filter.rules.expression import ExpressionError, compile_rule
from refinery.transforms.filter.rules.vectors import OneByOne, judge_batch

TYPES = {"a": "float", "b": "float", "n": "integer", "m": "integer", "s": "string", "t": "string"}

FLOATS = st.floats(-100, 100, width=32)
INTEGERS = st.integers(-(2**40), 2**40)
TEXTS = st.text("abz~é", max_size=3)
WHOLE = st.fixed_dictionaries({"a": FLOATS, "b": FLOATS, "n": INTEGERS, "m": INTEGERS, "s": TEXTS, "t": TEXTS})
SPARSE = st.fixed_dictionaries(
    {"a": st.none() | FLOATS, "b": st.none() | FLOATS, "n": st.none() | INTEGERS, "m": st.none() | INTEGERS}
    | {"s": TEXTS, "t": TEXTS}
)

COMPARISON = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
INTEGER = st.sampled_from(["n", "m"]) | st.integers(0, 2**40).map(str) | st.integers(1, 99).map("-{}".format)
FLOAT = st.sampled_from(["a", "b"])
TEXT = st.sampled_from(["s", "t"]) | TEXTS.map(repr)


def terms(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Integer terms in which every operation of Python and of a rule gives the same double."""
    return st.builds("({} {} {})".format, inner, st.sampled_from("+-"), inner) | st.builds(
        "{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner
    )


COMPARED = (
    st.builds("{} {} {}".format, st.recursive(INTEGER, terms, max_leaves=4), COMPARISON, INTEGER)
    | st.builds("{} {} {} {} {}".format, INTEGER, COMPARISON, INTEGER, COMPARISON, INTEGER)
    | st.builds("{} {} {}".format, FLOAT, COMPARISON, FLOAT)
    | st.builds("{} {} {}".format, TEXT, COMPARISON, TEXT)
    | st.builds("{} in [{}, {}]".format, TEXT, TEXTS.map(repr), TEXTS.map(repr))
    | st.builds("{} not in ({}, {})".format, INTEGER, st.integers(-3, 3), st.integers(-3, 3))
)


def conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner)
        | inner.map("not {}".format)
        | inner.map("({})".format)
    )


RULES = st.recursive(COMPARED, conditions, max_leaves=6)


def named(rule: str) -> bool:
    try:
        return bool(compile_rule(rule, TYPES).names)
    except ExpressionError as error:
        assert "names no column" in str(error), (rule, error)
        return False


@given(RULES.filter(named), WHOLE)
def test_without_missing_values_a_rule_is_what_python_says(rule, row):
    assert compile_rule(rule, TYPES)(row) is bool(eval(rule, {"__builtins__": {"min": min, "max": max}}, dict(row)))  # noqa: S307


@given(st.floats(width=64, allow_nan=False), st.floats(0, 1e30, width=64), COMPARISON)
@example(0.7, 0.7, ">=")
def test_comparisons_with_a_column_of_float32_are_numpys(value, bound, comparison):
    with np.errstate(over="ignore"):
        column = np.float32(value)
        expected = eval(f"column {comparison} bound", {"column": column, "bound": np.float32(bound)})  # noqa: S307
    rule = compile_rule(f"a {comparison} {bound!r}", TYPES)
    assert rule({"a": value}) is rule({"a": float(column)}) is bool(expected)


KLEENE = {"and": pc.and_kleene, "or": pc.or_kleene}
ARROW = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@given(
    st.lists(SPARSE, min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(["a b", "n m", "s t"]), COMPARISON, st.booleans()), min_size=2, max_size=4),
    st.sampled_from(["and", "or"]),
)
def test_missing_values_are_sqls_in_rows_and_tables(rows, parts, word):
    schema = pa.schema(
        {"a": pa.float32(), "b": pa.float32(), "n": pa.int64(), "m": pa.int64(), "s": pa.string(), "t": pa.string()}
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    texts, masks = [], []
    for pair, comparison, negated in parts:
        left, right = pair.split()
        texts.append(f"{'not ' * negated}{left} {comparison} {right}")
        mask = ARROW[comparison](table[left], table[right])
        masks.append(pc.invert(mask) if negated else mask)
    expected = masks[0]
    for mask in masks[1:]:
        expected = KLEENE[word](expected, mask)
    rule = compile_rule(f" {word} ".join(texts), TYPES)
    assert [rule.decide(row) for row in rows] == expected.to_pylist()
    assert rule.mask(table).to_pylist() == pc.fill_null(expected, False).to_pylist()


SCHEMA = pa.schema(
    {"a": pa.float32(), "b": pa.float32(), "d": pa.float64(), "n": pa.int64(), "m": pa.uint32()}
    | {"s": pa.string(), "t": pa.string(), "c": pa.bool_(), "l": pa.list_(pa.string())}
)
KINDS = TYPES | {"d": "double", "c": "boolean", "l": "strings"}
ANY = st.fixed_dictionaries(
    {name: st.none() | st.floats(width=32) for name in "ab"}
    | {"d": st.none() | st.floats(), "c": st.none() | st.booleans(), "l": st.lists(TEXTS, max_size=2)}
    | {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        "m": st.none() | st.integers(0, 2**32 - 1),
    }
    | {name: st.none() | TEXTS for name in "st"}
)
NUMBER = st.sampled_from(["a", "b", "d", "n", "m", "0", "1", "-2.5", "0.7", "1e300", "9007199254740993", "3"])
ARITHMETIC = st.recursive(
    NUMBER,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
        | st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner)
        | inner.map("(-{})".format)
    ),
    max_leaves=4,
)
TESTED = (
    st.builds("{} {} {}".format, ARITHMETIC, COMPARISON, ARITHMETIC)
    | st.builds("{} {} {} {} {}".format, ARITHMETIC, COMPARISON, NUMBER, COMPARISON, ARITHMETIC)
    | st.builds("{} is {}null".format, ARITHMETIC | TEXT, st.sampled_from(["", "not "]))
    | st.builds("{} {}in [1, 0.7, -2.5]".format, ARITHMETIC, st.sampled_from(["", "not "]))
    | st.builds("{} {} {}".format, TEXT, COMPARISON, TEXT)
    | st.builds("{} in ('a', '', {})".format, TEXT, TEXTS.map(repr))
    | st.builds("{}({}, {})".format, st.sampled_from(["starts_with", "ends_with", "contains"]), TEXT, TEXT)
    | st.sampled_from(["c", "'a' in l", "not c"])
)
EVERY = st.recursive(TESTED, conditions, max_leaves=5)


@given(EVERY, st.lists(ANY, max_size=8))
@example("n < 9007199254740992.0", [{"n": 2**53 + 1}])
@example("n == m or n != n", [{"n": -(2**63)}])
@example("contains(s, 'a\\') or starts_with(s, '%')", [{"s": "a\\"}, {"s": "%"}])
@example("a >= 0.7", [{"a": 0.7}, {"a": float("nan")}, {"a": None}])
def test_whole_columns_are_judged_as_their_rows(text, rows):
    try:
        rule = compile_rule(text, KINDS)
    except ExpressionError:
        return
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    expected = [rule(row) for row in table.to_pylist()]
    assert rule.mask(table).to_pylist() == expected
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    assert rule.mask(pieces).to_pylist() == expected


COLUMNS = pa.RecordBatch.from_pylist([{"a": 0.5, "n": 3, "s": "a", "c": True, "m": 1}, {"a": None, "s": ""}], SCHEMA)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a > 0.3 and s == 'a' and n >= 3", [True, False]),
        ("not (a > 0.3) or s is null", [False, True]),
        ("(a + 1) / 2 < max(n, m) and s in ['a', 'b']", [True, False]),
        ("starts_with(s, 'a') or contains(s, 'b')", [True, False]),
        ("c and 0.1 < a <= 0.5 and n in (3, 4.5)", [True, False]),
    ],
)
def test_rules_as_people_write_them_are_judged_by_columns(text, expected):
    rule = compile_rule(text, KINDS)
    assert judge_batch(rule._run, COLUMNS.select(list(rule.names))).tolist() == expected


@pytest.mark.parametrize("text", ["'a' in l", "contains(s, t)", "n > 0.5"])
def test_what_columns_cannot_say_exactly_is_left_to_rows(text):
    batch = pa.RecordBatch.from_pylist([{"n": 2**60, "s": "a", "t": "a", "l": ["a"]}], SCHEMA)
    rule = compile_rule(text, KINDS)
    with pytest.raises(OneByOne):
        judge_batch(rule._run, batch.select(list(rule.names)))
    assert rule.mask(pa.Table.from_batches([batch])).to_pylist() == [True]


WORDS = ["a", "n", "s", "and", "or", "not", "in", "is", "null", "(", ")", "[", "]", ",", "==", "<", "+", "-", "*", "/"]
SOUP = st.lists(st.sampled_from([*WORDS, "1", "0.3", "'x'", "max", "contains", "**", ".", "\0"]), max_size=12).map(
    " ".join
)


@given(SOUP | st.text(max_size=40), SPARSE)
@example("a / 0 > 1", {"a": 1.0})
@example("n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n * n > 1", {"n": 2**62})
def test_any_text_is_refused_in_one_line_or_judges_every_row(text, row):
    try:
        rule = compile_rule(text, TYPES)
    except ExpressionError as error:
        assert str(error).isprintable()
        return
    assert rule.decide(row) in (True, False, None)
