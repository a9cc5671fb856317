"""Tests for what you add to Refinery: a class for each kind of declaration, with the tests that ours pass.

    from refinery.testing import ReaderTests

    class TestMbox(ReaderTests):
        reader = MBOX

        def files(self):
            return {"a.mbox": b"From ..."}

pytest finds their tests by name; nothing here imports it. See docs/extending.md.
"""

from refinery.testing.commands import CommandTests
from refinery.testing.cuts import CutTests
from refinery.testing.exports import ExportTests
from refinery.testing.readers import ReaderTests
from refinery.testing.stages import StageTests
from refinery.testing.writers import WriterTests

__all__ = ["CommandTests", "CutTests", "ExportTests", "ReaderTests", "StageTests", "WriterTests"]
