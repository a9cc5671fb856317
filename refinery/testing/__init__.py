"""Tests for what you add to Refinery: a class for each kind of declaration, with the tests that ours pass.

    from refinery.testing import ReaderTests

    class TestMbox(ReaderTests):
        reader = MBOX

        def files(self):
            return {"a.mbox": b"From ..."}

pytest finds their tests by name; nothing here imports it. Names are imported on first use. See docs/extending.md.
"""

from typing import TYPE_CHECKING

from refinery.offers import offers

if TYPE_CHECKING:
    from refinery.testing.commands import CommandTests as CommandTests
    from refinery.testing.cuts import CutTests as CutTests
    from refinery.testing.exports import ExportTests as ExportTests
    from refinery.testing.readers import ReaderTests as ReaderTests
    from refinery.testing.stages import StageTests as StageTests
    from refinery.testing.writers import WriterTests as WriterTests

__getattr__, __dir__ = offers(__name__, __file__)
