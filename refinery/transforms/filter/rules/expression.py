"""Rules over the columns of documents: `edu > 0.3 or (dclm > 0.02 and language == 'en')`.

    rule = compile_rule("edu > 0.3 or language == 'en'", {"edu": "float", "language": "string"})
    rule({"edu": 0.4, "language": ""})   # True
    rule.mask(table)                     # the same of every row of a pyarrow table

The language (docs/labels.md has it for users):

- Columns by name; numbers; texts in ' or ", without escapes; lists `('en', 'de')` or `['en', 'de']`. `and`, `or`,
  `not`; `==`, `!=`, `<`, `<=`, `>`, `>=`, in chains too (`0.1 < edu <= 0.3`); `in`, `not in`; `is null`, `is not null`;
  `+ - * /`; `min(a, b, …)`, `max(a, b, …)`; `starts_with(text, part)`, `ends_with`, `contains`. Nothing else: no
  attributes, no powers, no repeated texts, no regular expressions. lark parses it (LALR: linear time).
- A missing number (null, NaN, a division by 0, a result beyond 1.8e308) makes a comparison unknown, and `and`, `or` and
  `not` follow SQL: unknown or true is true, not unknown is unknown. A rule that comes out unknown is not met, as in
  SQL's WHERE. So neither `edu > 0.3` nor `not edu > 0.3` is met where edu is missing; `edu is null or edu > 0.3` says
  otherwise. A text is never missing: where a stage did not run it is "", and `is null` is true of "".
- Columns of type float hold float32. A comparison with one (or with what is computed from one) rounds both sides to
  float32 first, as numpy does: 0.7 is the float32 nearest to 0.7, so `edu >= 0.7` holds for a score of 0.7, and the
  same for the score as a stage measured it and as the published column holds it. Integers compare exactly. Arithmetic
  is that of doubles.
- Texts compare by code point: 'Z' < 'a'.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from refinery.transforms.core.wording import given
from refinery.transforms.filter.rules.evaluate import Row
from refinery.transforms.filter.rules.grammar import COLUMN_KINDS, NUMBERS, WORDS, ExpressionError, Functions, Node
from refinery.transforms.filter.rules.vectors import OneByOne, judge_batch

__all__ = ["ExpressionError", "Rule", "column_types", "compile_formula", "compile_rule"]

MAX_LENGTH = 10_000  # characters; with the grammar's MAX_DEPTH this bounds the work of a rule


class Rule:
    """A compiled rule. text: as given. names: the columns that it reads, sorted. Immutable, picklable, thread-safe.

    Cost of a row: about a microsecond per comparison.
    """

    __slots__ = ("_run", "_types", "names", "text")

    def __init__(self, text: str, types: Mapping[str, str], tree: Node) -> None:
        self.text = text
        self.names = tuple(sorted(tree.names))
        self._types = {name: types[name] for name in self.names}
        self._run = tree.run

    def __call__(self, row: Row) -> bool:
        """Whether a row (names -> values, None or no key where missing) meets the rule.

        Raises TypeError for a value of another type than its column's.
        """
        return self._run(row) is True

    def decide(self, row: Row) -> bool | None:
        """True, False, or None where a missing value leaves it unknown."""
        return self._run(row)  # type: ignore[no-any-return]

    def mask(self, table: pa.Table) -> pa.BooleanArray:
        """Whether each row of a table meets the rule, without nulls; reads only the columns that the rule names.

        Raises ExpressionError if one is not in the table. Memory: one batch of rows. By whole columns, where these have
        all values exactly as they are in single rows (vectors.py); otherwise row by row, some fifty times as slow.
        """
        missing = [name for name in self.names if name not in table.column_names]
        if missing:
            raise ExpressionError(f"{', '.join(missing)}: no such column in this table")
        chunks = [self._judge(batch) for batch in table.select(list(self.names)).to_batches(max_chunksize=65_536)]
        return pa.concat_arrays(chunks) if chunks else pa.array([], pa.bool_())

    def _judge(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        try:
            return pa.array(judge_batch(self._run, batch))
        except OneByOne:
            return pa.array([self(row) for row in _rows(batch)], pa.bool_())

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_rule, (self.text, self._types)

    def __repr__(self) -> str:
        return f"Rule({self.text!r})"


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    names = batch.schema.names
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def compile_rule(text: str, types: Mapping[str, str]) -> Rule:
    """The rule that `text` says. types: the columns that it may name -> "string", "float", "integer", "strings"
    or "boolean".

    Raises ExpressionError, one line with the position, for what it does not understand: syntax, a name that is not
    a column (with the nearest, or all), values of types that do not go together, more than 10,000 characters or 50
    levels. Cost: linear, some microseconds per word.
    """
    tree = _tree(text, types, "a condition is needed, as in edu > 0.3")
    if tree.kind != "condition":
        raise ExpressionError("a value given, a condition is needed, as in edu > 0.3", tree.position)
    if not tree.names:
        raise ExpressionError(f"it names no column, {', '.join(sorted(types)) or 'none'} are known", tree.position)
    return Rule(text, types, tree)


def compile_formula(text: str, types: Mapping[str, str], functions: Functions) -> Callable[[Row], float | None]:
    """What computes the number that `text` says of a row, None where a value is missing or there is no result.

    types: as compile_rule's. functions: more than the language has. Raises ExpressionError as compile_rule, and for a
    condition or text. Cost: as compile_rule.
    """
    tree = _tree(text, types, "a number is needed, as in 2 * q", functions)
    if tree.kind not in NUMBERS:
        raise ExpressionError(f"{WORDS[tree.kind]} given, a number is needed", tree.position)
    return tree.run


def _tree(text: str, types: Mapping[str, str], needed: str, functions: Functions | None = None) -> Node:
    """A checked text."""
    if not isinstance(text, str):
        raise ExpressionError(f"{given(text)} given, a rule as text is allowed")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"{len(text):,} characters given, up to {MAX_LENGTH:,} are allowed")
    if unknown := sorted(set(types.values()) - COLUMN_KINDS.keys()):
        raise ValueError(f"types: {unknown[0]!r} given, {', '.join(COLUMN_KINDS)} are allowed")
    if not text.strip():
        raise ExpressionError(f"'' (empty text) given, {needed}")
    from refinery.transforms.filter.rules.build_tree import build_tree  # imports lark, for which a rule has to be there

    return build_tree(text, types, functions or {})


def column_types(schema: pa.Schema) -> dict[str, str]:
    """The columns of a table that rules can name, with their types: texts, integers, floats and lists of texts."""
    found = {}
    for field in schema:
        kind = field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found[field.name] = "string"
        elif pa.types.is_integer(kind):
            found[field.name] = "integer"
        elif pa.types.is_float32(kind):
            found[field.name] = "float"
        elif pa.types.is_boolean(kind):
            found[field.name] = "boolean"
        elif pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
            found[field.name] = "strings"
    return found
