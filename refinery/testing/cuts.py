"""What every pass that cuts parts out of documents promises, as tests that its author inherits."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq

from refinery.testing.expect import expect
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.dedup.cutting_pass import CuttingPass
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, signature_table
from refinery.transforms.write.documents import documents_table
from refinery.transforms.write.kept_documents import PartPair, read_kept_documents

ODD = (
    "",
    "\n\n",
    " ",
    "x",
    "中文没有空格。日本語も。",
    "e\u0301 \u2028 \x7f 😀",
    "a. " * 3000,
    "no end of line " * 500,
)
SIGNATURE = SignatureParams(permutations=4)
GROUP = 3  # rows of a row group, so a part has several


class CutTests:
    """Tests of one pass. Give it `cutting`, the declaration, and `texts`, of which some share what it cuts.

    What they hold it to: its columns of a document do not depend on which others are in a batch; what phase 2 finds
    does not depend on how documents are spread over parts, row groups and shuffle keys; something is found in `texts`;
    what the stage keeps has lost text where something was found, has no note of it left, and its own id; documents
    without a note are unchanged.

    Each test runs phase 2 in this process, some seconds.
    """

    cutting: ClassVar[CuttingPass[Any]]

    def texts(self) -> Sequence[str]:
        """Texts of documents, some of which share what is cut."""
        raise NotImplementedError

    def params(self) -> Any:
        """The parameters under which it is."""
        return self.cutting.params() if self.cutting.params else None

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def documents(self) -> list[Document]:
        """Those of `texts`, and odd ones, in a fixed order. Another one where the columns need more of a document."""
        texts = dict.fromkeys([*self.texts(), *ODD])
        return [
            Document(document_id(text), text, f"https://example.org/{at}", "source", f"file@{at}", at)
            for at, text in enumerate(texts)
        ]

    def noted(self, parts: int, partitions: int) -> dict[str, Document]:
        """Origin -> the document as phase 3 reads it, for documents dealt to so many parts."""
        docs = self.documents()
        dealt = [[doc for at, doc in enumerate(docs) if at * 7 % parts == part] for part in range(parts)]
        with TemporaryDirectory(prefix="refinery-cut-") as folder:
            self._decide(folder, dealt, partitions)
            kept = [doc for part, group in enumerate(dealt) for doc in self._kept(folder, part, len(group))]
        return {doc.origin: doc for doc in kept}

    def _decide(self, folder: str, dealt: Sequence[Sequence[Document]], partitions: int) -> None:
        """documents/ and signatures/ of the parts, and verdicts/ as phase 2 makes them."""
        import apache_beam as beam
        from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

        from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts

        parts = []
        for number, docs in enumerate(dealt):
            table = signature_table(
                [doc.id for doc in docs],
                [rank_key(doc, 0, RankParams()) for doc in docs],
                ["source"] * len(docs),
                ["domain"] * len(docs),
                [len(doc.text.encode()) for doc in docs],
                compute_signatures([doc.text for doc in docs], SIGNATURE),
                self.cutting.hashed.made(docs, SIGNATURE),
            )
            for name, rows in (("signatures", table), ("documents", documents_table(list(docs)))):
                path = Path(folder, name, f"{number}.parquet")
                path.parent.mkdir(exist_ok=True)
                pq.write_table(rows, path, compression="none", row_group_size=GROUP)
            parts.append((f"{folder}/signatures/{number}.parquet", len(docs)))
        params = DedupParams(near=None, cutting=((self.cutting, self.params()),))
        pipeline = beam.Pipeline(runner=FnApiRunner())
        decide = Deduplicate(params, SIGNATURE, ("source",), list_parts(folder, parts), partitions, salt="salt")
        pipeline | decide | WriteVerdicts(folder, ("source",))
        pipeline.run().wait_until_finish()

    def _kept(self, folder: str, part: int, rows: int) -> list[Document]:
        groups = -(-rows // GROUP)
        pair = PartPair(folder, f"documents/{part}.parquet", folder, f"verdicts/{part}.parquet", groups)
        return [doc for group in range(groups) for doc in read_kept_documents(pair, group, (self.cutting.cuts,))]

    # --- the tests --------------------------------------------------------------------------------------------------

    def test_columns_do_not_depend_on_the_batch(self) -> None:
        docs = self.documents()
        whole = self.cutting.hashed.made(docs, SIGNATURE)
        for name, column in whole.items():
            for doc, value in zip(docs, column.to_pylist(), strict=True):
                alone = self.cutting.hashed.made([doc], SIGNATURE)[name][0].as_py()
                expect(alone == value, f"column {name}: {doc.text[:60]!r} alone has {alone!r}, among others {value!r}")

    def test_what_is_found_does_not_depend_on_how_documents_are_stored(self) -> None:
        note = self.cutting.cuts.note
        first, *others = (self.noted(*layout) for layout in ((1, 1), (3, 1), (4, 3)))
        expect(any(note in doc.meta for doc in first.values()), "nothing is found in the texts that `texts` returns")
        for other in others:
            expect(other.keys() == first.keys(), "other documents are kept")
            for origin, doc in first.items():
                here, there = doc.meta.get(note), other[origin].meta.get(note)
                expect(here == there, f"{doc.text[:60]!r}: {here!r} is found, among other parts {there!r}")

    def test_what_is_kept_has_lost_what_was_found(self) -> None:
        note = self.cutting.cuts.note
        judge: Any = self.cutting.judge
        resource = () if self.cutting.prepare is None else (self.cutting.prepare(self.params()),)
        kept = 0
        for doc in self.noted(2, 1).values():
            answer = judge(doc, *resource, params=self.params())
            if note not in doc.meta:
                expect(answer == doc, f"{doc.text[:60]!r} has no note, and {answer!r} is made of it")
                continue
            if isinstance(answer, Drop):
                continue
            kept += 1
            expect(note not in answer.meta, f"{doc.text[:60]!r}: the note {note!r} is left")
            expect(answer.id == doc.id, f"{doc.text[:60]!r}: the id is another one")
            expect(len(answer.text) < len(doc.text), f"{doc.text[:60]!r}: nothing is cut")
        expect(kept > 0, "every document of which something is cut is dropped; give `params` that keep one")

    def test_notes_are_read_as_they_were_written(self) -> None:
        cuts = self.cutting.cuts
        rows = np.arange(6 * len(cuts.numbers)).reshape(6, -1)
        read = cuts.read({cuts.note: cuts.noted(rows.reshape(-1).tolist())})
        expect(read == list(map(tuple, rows.tolist())), f"{read} is read, {rows.tolist()} was recorded")
