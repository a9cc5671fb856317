"""Texts of documents, as text: side by side, what differs marked."""

from collections.abc import Sequence

from refinery.pipelines.reports.pages.markup import Html, el

NOT_ALIGNED = "They differ too much to be aligned: words that the other lacks are marked."
Marked = Sequence[tuple[bool, str]]  # whether the other text lacks it, piece


def side_by_side(texts: Sequence[tuple[str, Marked]]) -> Html:
    """One or two texts, the first marked as what went, the second as what came."""
    return el(
        "div",
        [_text(name, pieces, "del" if place == 0 else "ins") for place, (name, pieces) in enumerate(texts)],
        class_="sides",
    )


def _text(name: str, pieces: Marked, tag: str) -> Html:
    shown = [el(tag, piece) if differs else piece for differs, piece in pieces]
    return el(
        "figure",
        el("figcaption", name),
        el("div", shown, class_="text", dir="auto", tabindex="0", role="region", aria_label=f"text {name}"),
    )
