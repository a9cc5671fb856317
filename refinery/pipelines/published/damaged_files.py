"""Input files with records that could not be read, by name: one that is cut is one dead letter, whatever it loses."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.parquet.batches import stored_batches
from refinery.loader.storage.store import Store
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import many

DEAD_LETTERS, READ = "dead_letters/", "read"
SHOWN = 5  # files that are named
SHOWN_ERRORS = 3


@dataclass
class DamagedFile:
    """errors: name of a dead letter -> how many there are. last: the last of them by its place, and that place, in
    bytes of what the file holds, or rows; -1 where it is unknown."""

    path: str
    errors: Counter[str] = field(default_factory=Counter)
    last: tuple[int, str] = (-1, "")

    def add(self, place: str, error: str) -> None:
        self.errors[error] += 1
        at = int(place) if place.isascii() and place.isdigit() else -1
        self.last = max(self.last, (at, error))

    @property
    def line(self) -> str:
        """Its name, what is wrong, and where the last of it is."""
        errors = ", ".join(f"{error} {count:,}" for error, count in self.errors.most_common(SHOWN_ERRORS))
        more = len(self.errors) - SHOWN_ERRORS
        where = f", the last at {self.last[0]:,}" if self.last[0] >= 0 else ""
        return f"{safe(self.path)}: {errors}{f' and {more} more kinds' if more > 0 else ''}{where}"


def damaged_files(store: Store, manifest: Manifest) -> list[DamagedFile]:
    """Those with the most dead letters first. Cost: where the funnel has dead letters of reading, one read of the
    origins of all dead letters."""
    if all(row["stage"] != READ or not row["dead"] for row in manifest.funnel):
        return []
    found: dict[str, DamagedFile] = {}
    for entry in manifest.files:
        if entry.path.startswith(DEAD_LETTERS):
            for batch in stored_batches(store, entry.path, ["stage", "error", "origin"]):
                read = batch.filter(pc.equal(batch["stage"], READ))
                for origin, error in zip(read["origin"].to_pylist(), read["error"].to_pylist(), strict=True):
                    path, _, place = origin.rpartition("@")
                    found.setdefault(path, DamagedFile(path)).add(place, error)
    return sorted(found.values(), key=lambda file: (-file.errors.total(), file.path))


def damage_lines(files: Sequence[DamagedFile]) -> Iterator[str]:
    """What a command says of them."""
    if files:
        dead = sum(file.errors.total() for file in files)
        yield (
            f"{many(len(files), 'input file')} could not be read in whole ({many(dead, 'dead letter')}; what stands "
            "behind the place where a file is cut is lost); fetch damaged files again:"
        )
        yield from (f"  {file.line}" for file in files[:SHOWN])
        if len(files) > SHOWN:
            yield f"  and {len(files) - SHOWN:,} more, in {DEAD_LETTERS}"
