"""What no run can know of its corpus, said by the people who publish it: `refinery card --about FILE`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.core.params import Params

Line = Annotated[str, Field(max_length=10_000)]

TO_FILL = "to be filled in by the provider"


class About(Params):
    """Facts that cards state as the publisher's own words. Empty: not said."""

    description: Line = ""
    """what the corpus is and what it was made for"""
    license: Line = ""
    """licence of the corpus as a whole: an SPDX identifier in the hub's spelling, or the address of a licence"""
    url: Line = ""
    """where it is, or will be, published"""
    creator: Line = ""
    """who made it"""
    contact: Line = ""
    """contact for questions and requests for removal"""
    published: Line = ""
    """date of publication, YYYY-MM-DD"""
    citation: Line = ""
    """how to cite it, BibTeX"""
    uses: Line = ""
    """what it is meant for, and what it is not"""
    maintenance: Line = ""
    """who maintains it, for how long, and how to request removals"""
    personal_data: Line = ""
    """what is known of personal data beyond what stages did"""
    representative: Line = ""
    """of the European summary: authorised representative in the Union"""
    models: Line = ""
    """names and versions of the models that were trained on it"""
    model_dependencies: Line = ""
    """models that these models were made from"""
    placed_on_market: Line = ""
    """date of their placement on the Union market"""
    last_acquired: Line = ""
    """latest date of acquisition of data, MM/YYYY"""
    collection_goes_on: Line = ""
    """whether the models are trained on new data after that date"""
    licensed_data: Line = ""
    """data under commercial licences of rightsholders, other private data"""
    crawlers: Line = ""
    """names of the provider's own crawlers, their purpose, behaviour and period"""
    user_data: Line = ""
    """data of users of the provider's services"""
    synthetic_data: Line = ""
    """data that models made, and which models"""
    opt_outs: Line = ""
    """what was done to respect reservations of rights, beyond the stages of the run"""
    illegal_content: Line = ""
    """what was done against illegal content, beyond the stages of the run"""


def read_about(path: str) -> About:
    """What a YAML file says; nothing for "". Raises ValueError, a line a problem, OSError where it cannot be read."""
    if not path:
        return About()
    data = load_yaml(Path(path).read_bytes(), path)
    return parse(About, data if isinstance(data, Mapping) or data is None else {"about": data}, "about")
