"""Documents and parameters for the tests of the heuristics."""

from typing import Any

from refinery.transforms.core.document import Document
from refinery.transforms.filter.heuristics import HeuristicsParams
from tests.beam import make_document

# One paragraph to a line; passes every rule.
PROSE = """The mill stands on the east bank of the river, and people have used it to grind corn for many years.
Nobody knows who built the first wheel, but the oldest stones carry marks that masons cut with iron tools.
In spring the water rises to the second step of the stair, and children come to watch the wheel turn.
A small door leads from the yard to the loft! Behind it, sacks of rye wait for the carrier and his cart.
Would the owner sell it? He says that his daughter will be the miller after him, as her aunt once was.
Visitors should bring boots, because the path along the dam is wet until the middle of the summer."""


def document(text: str, **meta: str) -> Document:
    return make_document(text, meta=meta)


def only(**sets: Any) -> HeuristicsParams:
    """Params with all other sets off."""
    return HeuristicsParams(**{"basic": None, "gopher": None, "repetition": None, "c4": None, "fineweb": None} | sets)
