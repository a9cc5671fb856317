"""The cards that there are: a name, a file's name, what makes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refinery.pipelines.reports.cards.facts import CardFacts


@dataclass(frozen=True)
class Card:
    """file: its name in a folder. what: a phrase about it. module, function: what writes it, imported when it does."""

    file: str
    what: str
    module: str
    function: str

    def write(self, facts: "CardFacts") -> bytes:
        """The card of a corpus."""
        make: Callable[[CardFacts], bytes] = getattr(import_module(self.module), self.function)
        return make(facts)


HERE = "refinery.pipelines.reports.cards"
CARDS: Mapping[str, Card] = {
    "markdown": Card("README.md", "data card for people and for Hugging Face's hub", f"{HERE}.data_card", "data_card"),
    "croissant": Card("croissant.json", "Croissant 1.0 JSON-LD of MLCommons", f"{HERE}.croissant", "croissant"),
    "eu-summary": Card(
        "training-content-summary.md",
        "the European Commission's public summary of training content",
        f"{HERE}.eu_summary",
        "eu_summary",
    ),
    "sbom": Card("sbom.cdx.json", "software bill of materials, CycloneDX 1.6", f"{HERE}.sbom", "sbom"),
}
DEFAULT = "markdown"
