"""What a recipe may say of the shape of its output, and of labels."""

from collections.abc import Iterable, Sequence

from refinery.transforms.core.stage import Note, Writer
from refinery.transforms.core.wording import nearest
from refinery.transforms.write.rows.labels import known_labels
from refinery.transforms.write.rows.writer import AS_INPUT, LAYOUT


def check_layout(
    writer: Writer, layout: str, annotate: Sequence[str], notes: Iterable[Note], stages: Iterable[str]
) -> None:
    """Raises ValueError where the lane's writer cannot write that layout, and for labels that there are not. notes,
    stages: of the recipe; names of its stages."""
    if (layout == LAYOUT) != (writer == AS_INPUT):
        raise ValueError(f"layout: {layout} given, the writer {writer.name} of the lane cannot write that")
    if annotate and layout != LAYOUT:
        raise ValueError(f"annotate: given beside layout: {layout}, only with {LAYOUT} is it allowed")
    known = [*known_labels(notes, stages)] if annotate else []
    for name in annotate:
        if name not in known:
            raise ValueError(f"annotate: {name[:60]!r} given, {nearest(name, known)}")
    if twice := sorted({name for name in annotate if annotate.count(name) > 1}):
        raise ValueError(f"annotate: {twice[0]!r} given twice")
