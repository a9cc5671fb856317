"""A classifier's opinion of a text, sentence by sentence: the share of it that is toxic.

`refinery train-toxicity` makes the model from labelled text. It reads sentences, not pages, since labelled toxic text
comes in sentences and comments, and a page is judged by how much of it is toxic.
"""

import re

from refinery.transforms.filter.fasttext_model import LABEL, FastTextModel
from refinery.transforms.filter.quality import classifier_text, score_line
from refinery.transforms.filter.toxic.folding import unfold
from refinery.transforms.filter.toxic.mention import QUOTED
from refinery.transforms.filter.toxic.words import GROUP_NAMES

TOXIC, CLEAN = LABEL + "toxic", LABEL + "clean"
NAMES = frozenset(GROUP_NAMES.split())
SHORTEST = 20  # characters: a shorter sentence is read with the one after it
LONGEST = 1_000  # characters read at a time
END = re.compile(r"(?<=[.!?。！？…])\s+|\n+")


def toxic_line(text: str) -> str:
    """What the classifier reads of a sentence or a comment, in training and in prediction: one line, case folded,
    letters in disguise by compatibility forms unfolded, punctuation apart.

    Quotations and names of groups are each replaced by one word: what is quoted is not said, and a classifier that
    learns names takes whatever names a group for toxic (Dixon et al. 2018).
    """
    said = QUOTED.sub(" quotation ", unfold(text.casefold()))
    words = classifier_text(said, LONGEST).split(" ")
    return " ".join("somebody" if word in NAMES else word for word in words)


def sentences(text: str) -> list[str]:
    """A text in pieces of `SHORTEST` to `LONGEST` characters that end with a sentence or a line. Linear."""
    found: list[str] = []
    held = ""
    for piece in END.split(text):
        held = f"{held} {piece}".strip()
        if len(held) >= SHORTEST:
            found += (held[at : at + LONGEST] for at in range(0, len(held), LONGEST))
            held = ""
    return [*found, held] if held else found


def toxic_share(text: str, model: FastTextModel, threshold: float) -> float:
    """Share of the characters of `text` in sentences that score at least `threshold`; 0.0 for an empty one."""
    pieces = sentences(text)
    toxic = sum(len(piece) for piece in pieces if score_line(toxic_line(piece), model, TOXIC) >= threshold)
    return toxic / sum(map(len, pieces)) if toxic else 0.0
