"""The last stage of a run whose output has the shape of its input: what `encode` is in a lane of tokens."""

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from refinery.transforms.core.document import TEXT_ID, Document
from refinery.transforms.core.names import ROW_CHANGED
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Stage
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.text_stage import TEXT, TextParams, finish_text


class RowsParams(Params):
    """How rows of the inputs become rows of the outputs."""

    LATER: ClassVar[tuple[str, ...]] = ("labels",)

    texts: Literal["changed", "all"] = "changed"
    """`changed` writes the text of rows whose text a stage changed, and leaves all others as they are; `all` writes
    every text, as after extraction"""
    labels: Literal["fields", "attributes"] = "fields"
    """where the labels of `annotate` go: `fields` of the rows, behind their own; `attributes`: no row is written, but
    for each file one of JSON Lines with an object for each row, which Dolma's toolkit reads"""
    into: str = ""
    """the field that texts are written into, a new one; empty: the one that they were read from"""

    @property
    def has_rows(self) -> bool:
        """Whether the files that are written hold the rows, not attributes of rows."""
        return self.labels == "fields"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.has_rows and self.into:
            raise ValueError(f"into: {self.into!r:.60} given with labels: attributes, which writes no rows")
        return self


def finish_row(doc: Document, params: RowsParams) -> EncodedDocument:
    """The document with its text in UTF-8 where an encoded one has its tokens, if that is to be written. One whose text
    is not that of its id (cut, redacted) gets the note `text_id`. Raises UnicodeEncodeError for lone surrogates."""
    found = finish_text(doc, TextParams())
    if params.texts == "all" or TEXT_ID in found.meta or ROW_CHANGED in found.meta:
        return found
    return replace(found, tokens=found.tokens[:0])


ROWS = Stage(
    name="rows",
    version=1,
    summary="Hand the row to the file that it came from, with its text if that changed.",
    params=RowsParams,
    optional=False,
    judge=finish_row,
    notes=TEXT.notes,
    output=TEXT.output,
    coder=TEXT.coder,
)


def rows_params(recipe: Any) -> RowsParams:
    """How a recipe wants rows."""
    found: RowsParams | None = recipe.params_of(ROWS)
    return found or RowsParams()
