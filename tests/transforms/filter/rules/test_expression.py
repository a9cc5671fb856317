"""Rules: what they mean, by a table; what is refused, with the position; tables and rows agree."""

import pickle

import pyarrow as pa
import pytest

from refinery.loader.format.provenance import Column, provenance_schema
from refinery.transforms.filter.rules.expression import ExpressionError, column_types, compile_rule

TYPES = {"edu": "float", "dclm": "float", "n": "integer", "language": "string", "sources": "strings"}

MEANING = [
    ("edu > 0.3 or (dclm > 0.02 and language == 'en')", {"edu": 0.4}, True),
    ("edu > 0.3 or (dclm > 0.02 and language == 'en')", {"edu": 0.1, "dclm": 0.03, "language": "en"}, True),
    ("edu > 0.3 or (dclm > 0.02 and language == 'en')", {"edu": 0.1, "dclm": 0.03, "language": "de"}, False),
    ("edu > 0.3 or dclm > 0.5 and n > 1", {"edu": 0.4, "dclm": 0.1, "n": 0}, True),  # `and` binds closer
    ("not edu > 0.3 and n > 1", {"edu": 0.1, "n": 2}, True),  # `not` takes the comparison
    ("0.1 < edu <= 0.3", {"edu": 0.3}, True),
    ("0.1 < edu <= 0.3", {"edu": 0.1}, False),
    ("1 < n != 3", {"n": 3}, False),
    ("language in ('en', 'de')", {"language": "de"}, True),
    ('language in ["en"]', {"language": "de"}, False),
    ("language in ('en')", {"language": "en"}, True),
    ("language not in ['en', 'de']", {"language": "fr"}, True),
    ("n in (-1, 2)", {"n": -1}, True),
    ("edu in (0.3, 0.7)", {"edu": 0.7}, True),
    ("'crawl' in sources", {"sources": ["books", "crawl"]}, True),
    ("'crawl' not in sources", {"sources": ["books"]}, True),
    ("language < 'en'", {"language": "de"}, True),
    ("starts_with(language, 'e') and ends_with(language, 'n') and contains(language, 'n')", {"language": "en"}, True),
    ("max(edu, dclm) >= 0.7", {"edu": 0.1, "dclm": 0.7}, True),
    ("min(n, 3) == 3", {"n": 5}, True),
    ("edu + dclm * 2 > 1", {"edu": 0.5, "dclm": 0.25 + 1e-3}, True),
    ("(edu + dclm) * 2 > 1.7", {"edu": 0.5, "dclm": 0.25}, False),
    ("7 - n - 2 == 0", {"n": 5}, True),  # from the left
    ("8 / n / 2 == 2", {"n": 2}, True),
    ("-n > -3", {"n": 2}, True),
    ("- -n == +n", {"n": 2}, True),
    ('language == "don\'t"', {"language": "don't"}, True),
    ("language == 'a\\n'", {"language": "a\\n"}, True),  # no escapes
    ("not (not (edu > 0.3))", {"edu": 0.4}, True),
]
MISSING = [
    ("edu > 0.3", {}, None),
    ("not edu > 0.3", {"edu": None}, None),
    ("edu > 0.3", {"edu": float("nan")}, None),
    ("edu != 0.3", {}, None),
    ("edu > 0.3 or n > 1", {"n": 2}, True),
    ("edu > 0.3 or n > 1", {"n": 1}, None),
    ("edu > 0.3 and n > 1", {"n": 1}, False),
    ("edu > 0.3 and n > 1", {"n": 2}, None),
    ("edu is null", {}, True),
    ("edu is not null", {}, False),
    ("edu is null or edu > 0.3", {}, True),
    ("edu in (0.1, 0.2)", {}, None),
    ("edu not in (0.1, 0.2)", {}, None),
    ("max(edu, n) > 1", {"n": 5}, None),
    ("-edu < 1", {}, None),
    ("1 / n > 0", {"n": 0}, None),
    ("1 / n is null", {"n": 0}, True),
    ("n * 1e308 * 10 > 1", {"n": 1}, None),
    ("n + 1 > 2", {"n": 10**400}, None),
    ("n > 2", {"n": -(10**400)}, None),
    ("language == ''", {}, True),  # a text is never missing
    ("language is null", {"language": ""}, True),
    ("language != 'en'", {}, True),
    ("'a' in sources", {}, False),
]
SINGLE = [
    ("edu >= 0.7", {"edu": 0.7}, True),  # a stage's double …
    ("edu >= 0.7", {"edu": 0.699999988079071}, True),  # … and the float32 that is published
    ("edu == 0.3", {"edu": 0.30000001192092896}, True),
    ("edu > 0.3", {"edu": 0.30000001192092896}, False),
    ("edu < 0.7", {"edu": 0.6999999}, True),
    ("edu * 1 >= 0.7", {"edu": 0.699999988079071}, True),
    ("max(edu, dclm) <= 0.1", {"edu": 0.1, "dclm": 0.1}, True),
    ("edu < 1e39", {"edu": 3e38}, True),
    ("n == 16777217", {"n": 16777216}, False),  # integers are not rounded
    ("n < 9007199254740993", {"n": 9007199254740992}, True),
    ("n > 0.5", {"n": 1}, True),
]


@pytest.mark.parametrize(("text", "row", "expected"), MEANING)
def test_meaning(text, row, expected):
    assert compile_rule(text, TYPES).decide(row) is expected


@pytest.mark.parametrize(("text", "row", "expected"), MISSING)
def test_missing_values_follow_sql(text, row, expected):
    rule = compile_rule(text, TYPES)
    assert rule.decide(row) is expected
    assert rule(row) is (expected is True)


@pytest.mark.parametrize(("text", "row", "expected"), SINGLE)
def test_columns_of_float32(text, row, expected):
    assert compile_rule(text, TYPES)(row) is expected


REFUSED = [
    ("", "'' (empty text) given, a condition is needed, as in edu > 0.3"),
    ("edux > 1", "at character 1: edux is not a column, did you mean edu?"),
    (
        "n > 1 and whatever > 1",
        "at character 11: whatever is not a column, dclm, edu, language, n, sources are allowed",
    ),
    ("edu > 'a'", "at character 7: a text given, a number is needed"),
    ("language > 1", "at character 12: a number given, a text is needed"),
    ("edu", "at character 1: a value given, a condition is needed, as in edu > 0.3"),
    ("edu and n > 1", "at character 1: a number given, a condition is needed"),
    ("n > 1 or language", "at character 10: a text given, a condition is needed"),
    ("edu >", "at character 6: the rule ends here, something is missing"),
    ("(edu > 1", "at character 9: the rule ends here, something is missing"),
    ("edu > 1)", "at character 8: ) is not understood here"),
    ("edu = 1", "at character 5: = is not understood here (is equal to: ==)"),
    ("edu == null", "at character 8: null is not a column, missing values are found by: is null, is not null"),
    ("edu > 1 OR n > 2", "at character 9: OR is not understood here (in small letters: or)"),
    ("edu > 1 && n > 2", "at character 9: & is not understood here (and, or, not are words)"),
    ("language == 'a", "at character 13: a text that does not end on its line"),
    ("1 > 2", "at character 1: it names no column, dclm, edu, language, n, sources are known"),
    ("sources is null", "at character 1: a list of texts is never null"),
    ("sources == 'a'", "at character 1: a list of texts given, a text is needed"),
    ("language in ['en', 3]", "at character 20: a list holds only texts or only numbers"),
    ("language in [n]", "at character 14: a list holds texts or numbers as they are"),
    ("n in ((1, 2), 3)", "at character 8: a list holds texts or numbers as they are"),
    ("'en' in language", "at character 9: a text given, a list of texts is needed"),
    ("n in language", "at character 6: a text given, a list of numbers is needed"),
    (
        "mean(edu, n) > 1",
        "at character 1: mean is not a function, min, max, starts_with, ends_with, contains are allowed",
    ),
    ("max(edu) > 1", "at character 1: max of 1 number given, 2 or more are needed"),
    ("contains(language) ", "at character 1: contains takes two texts: the text, and what it is searched for"),
    ("n in (1e400)", "at character 7: 1e400 is beyond the largest number, 1.8e308"),
    # What would be dangerous in a language that evaluates names, attributes or powers:
    ("edu.__class__ == 1", "at character 4: . is not understood here"),
    (
        "__import__('os') == 1",
        "at character 1: __import__ is not a function, min, max, starts_with, ends_with, contains",
    ),
    ("(lambda: 1)() > edu", "at character 8: : is not understood here"),
    ("n ** 9 ** 9 ** 9 > 1", "at character 4: * is not understood here"),
    ("'x' * 999999999 == language", "at character 1: a text given, a number is needed"),
    ("edu > \x1b[2J", "at character 7: \\x1b is not understood here"),
    ("n > ٣", "at character 5: ٣ is not understood here"),
    ("n[0] > 1", "at character 2: [ is not understood here"),
    ("n == 1; n == 2", "at character 7: ; is not understood here"),
    ("n > 1" + " " * 10_000, "10,005 characters given, up to 10,000 are allowed"),
    ("not " * 2000 + "n > 1", "at character 8001: nested deeper than 50 levels"),
    ("n" + " + 1" * 200 + " > 1", "at character 1: nested deeper than 50 levels"),
    ("9" * 400 + " > n", "at character 1: 99999999999999999999 is beyond the largest number, 1.8e308"),
]


@pytest.mark.parametrize(("text", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_what_is_refused_and_where(text, problem):
    with pytest.raises(ExpressionError) as error:
        compile_rule(text, TYPES)
    assert str(error.value).startswith(problem)
    assert str(error.value).isprintable()


def test_other_types_are_refused():
    with pytest.raises(ExpressionError, match="5 \\(an integer\\) given, a rule as text is allowed"):
        compile_rule(5, TYPES)
    with pytest.raises(ValueError, match="types: 'number' given"):
        compile_rule("n > 1", {"n": "number"})


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("edu > 0.3", {"edu": "0.4"}),
        ("n > 1", {"n": 1.5}),
        ("n > 1", {"n": True}),
        ("language == 'en'", {"language": 3}),
    ],
)
def test_values_of_another_type_than_the_column(text, row):
    with pytest.raises(TypeError, match=r"found, .* expected"):
        compile_rule(text, TYPES)(row)


def test_deep_parentheses_and_long_lists_are_only_long():
    assert compile_rule("(" * 4000 + "n > 1" + ")" * 4000, TYPES)({"n": 2})
    assert compile_rule("n in (" + ", ".join(map(str, range(1500))) + ")", TYPES)({"n": 1499})
    assert compile_rule(" or ".join(f"n == {number}" for number in range(700)), TYPES)({"n": 699})


def test_rules_know_their_columns_and_travel():
    rule = compile_rule("n > 1 and max(edu, dclm) > 0.3", TYPES)
    assert rule.names == ("dclm", "edu", "n")
    again = pickle.loads(pickle.dumps(rule))  # noqa: S301 - our own bytes
    assert again.text == rule.text
    assert again({"n": 2, "edu": 0.1, "dclm": 0.5})


def test_a_table_answers_like_its_rows():
    table = pa.table(
        {
            "text": ["never read"] * 4,
            "edu": pa.array([0.3, 0.7, None, 0.9], pa.float32()),
            "language": ["en", "de", "en", ""],
            "n": pa.array([1, None, 3, 4], pa.int64()),
            "sources": [["a"], [], ["a", "b"], ["b"]],
        }
    )
    for text in ("edu >= 0.7 or language == 'en' and n > 1", "'a' in sources", "edu is null", "not n > 1"):
        rule = compile_rule(text, column_types(table.schema))
        mask = rule.mask(table)
        assert mask.null_count == 0
        assert mask.to_pylist() == [rule(row) for row in table.to_pylist()]
    assert rule.mask(table.slice(0, 0)).to_pylist() == []
    with pytest.raises(ExpressionError, match="n: no such column in this table"):
        rule.mask(table.drop_columns("n"))


def test_the_columns_of_provenance_that_rules_can_name():
    schema = provenance_schema([Column("edu", "float"), Column("language", "string"), Column("n", "integer")])
    types = column_types(schema)
    assert types.items() >= {"edu": "float", "language": "string", "n": "integer", "copies": "integer"}.items()
    assert types["sources"] == "strings"
    assert "id" not in types
