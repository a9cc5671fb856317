"""Documents that a stage drops and whose copies are to be dropped, too. They wait in a registry per pipeline until the
end of phase 1 writes their signatures; no other stage sees them, and their texts are written nowhere.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from weakref import WeakKeyDictionary

import apache_beam as beam

TAG = "withheld"  # of the output of a step

_withheld: "WeakKeyDictionary[beam.Pipeline, list[beam.PCollection]]" = WeakKeyDictionary()


def add_withheld(pipeline: beam.Pipeline, docs: beam.PCollection) -> None:
    """Put a PCollection of Document where `take_withheld` finds it."""
    _withheld.setdefault(pipeline, []).append(docs)


def take_withheld(pipeline: beam.Pipeline) -> list[beam.PCollection]:
    """All of them so far; each is handed out once."""
    return _withheld.pop(pipeline, [])
