"""What every stage that judges documents promises, as tests that its author inherits."""

import math
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

from refinery.testing.answers import digest, judge_all, judged, kept_of, resource_of
from refinery.testing.expect import expect
from refinery.testing.hostile import HOSTILE, LARGE, SHAPES, long_text
from refinery.testing.in_pipeline import run_in_pipeline
from refinery.testing.params import check_described, check_mistakes, check_recorded
from refinery.transforms.core.document import Document, Drop, document_id, part_id
from refinery.transforms.core.measured_rules import readings
from refinery.transforms.core.stage import Stage

SENTENCE = re.compile(r"[A-Z].*\.", re.S)
FOUND = re.compile(r"[^/\s]+/\S+")
SHORT, LONG = 50_000, 200_000  # characters, between which the growth of the time is looked at
MOST_GROWTH = 10  # times as long for four times the text; 16 is quadratic
NOTICED = 0.2  # seconds of the processor below which growth is not looked at


class StageTests:
    """Tests of one stage that judges documents. Give it `stage`, the declaration, and `examples`: text -> the reason
    for which it is dropped, "" where it is kept; some of both where the stage has reasons. `unlimited`: numeric
    parameters that may be any number. A stage that looks at more than the text, or needs a file or a parameter, gives
    `document` and `params`, too. `shapes`: the long texts that it is tried with, by their names in hostile.SHAPES; all
    unless given.

    What they hold a stage to: parameters are described, limited, refused in a line and read back as recorded; the same
    document gives the same answer, whatever was judged before, in another process and after pickling; what is kept has
    its origin, an id that fits, and notes that are declared; reasons are declared, and one whose meaning names a
    threshold (`min_…`, `max_…`) measures what drops the document; no text is too odd, and time grows with its length; a
    pipeline accounts for every document.
    """

    stage: ClassVar[Stage[Any]]
    unlimited: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[Sequence[str]] = tuple(SHAPES)

    def examples(self) -> Mapping[str, str]:
        """Text -> reason, or "" for one that is kept."""
        raise NotImplementedError('examples: give text -> reason, "" for a text that is kept')

    def params(self) -> Any:
        """The parameters under which the examples have their answers."""
        return self.stage.params() if self.stage.params else None

    def document(self, text: str, number: int) -> Any:
        """The document with that text. Another one where the stage needs more of a document, or takes a raw one."""
        clean = text.encode("utf-8", "replace").decode()
        url = f"https://example.org/{number}"
        return Document(document_id(clean), text, url, "source", f"file@{number}", number, {"language": "en"})

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def documents(self) -> list[Any]:
        """Those of the examples, then the odd ones. Readers let no lone surrogate into a pipeline."""
        texts = [text for text in (*self.examples(), *HOSTILE.values()) if is_clean(text)]
        return [self.document(text, number) for number, text in enumerate(texts)]

    def answers(self, docs: Sequence[Any]) -> list[Any]:
        """What the stage says of each, with a resource of its own."""
        return judge_all(self.stage, self.params(), docs)

    def emitted(self) -> Iterator[tuple[Any, Any, int]]:
        """(document, what is made of it, its number among these) of all that is kept."""
        docs = self.documents()
        for doc, answer in zip(docs, self.answers(docs), strict=True):
            for number, made in enumerate(kept_of(answer)):
                yield doc, made, number

    # --- the declaration --------------------------------------------------------------------------------------------

    def test_the_declaration_says_what_it_is(self) -> None:
        stage = self.stage
        expect(stage.judge is not None, f"{stage.name}: no judge given; these are tests of stages that judge documents")
        sentence = SENTENCE.fullmatch(stage.summary) is not None
        expect(sentence, f"summary: {stage.summary!r} given, a sentence is needed")
        reasons = [(reason.name, reason.meaning) for reason in stage.reasons]
        for what, meaning in [*reasons, *((note.name, note.meaning) for note in stage.notes)]:
            expect(bool(meaning.strip()), f"{what}: no meaning given")
        for name in stage.libraries:
            try:
                version(name)
            except PackageNotFoundError:
                expect(False, f"libraries: {name!r} given, the name of an installed distribution is needed")
        if stage.on and stage.params is not None:
            missing = [name for name, field in stage.params.model_fields.items() if field.is_required()]
            expect(
                not missing or not stage.optional,
                f"{missing[:1]}: required, and the stage is on where a recipe says nothing; a default or on=False is "
                "needed",
            )

    def test_parameters_are_described_and_limited(self) -> None:
        check_described(self.stage.params, self.unlimited)  # type: ignore[arg-type]  # a class of Params

    def test_wrong_parameters_are_refused_in_a_line(self) -> None:
        check_mistakes(self.stage.params)  # type: ignore[arg-type]  # a class of Params

    def test_parameters_are_read_back_as_they_were_recorded(self) -> None:
        check_recorded(self.params())

    # --- answers ----------------------------------------------------------------------------------------------------

    def test_examples_get_their_answers(self) -> None:
        examples = self.examples()
        docs = [self.document(text, number) for number, text in enumerate(examples)]
        for (text, reason), answer in zip(examples.items(), self.answers(docs), strict=True):
            found = getattr(answer, "reason", "")
            expect(found == reason, f"{text[:60]!r}: {found or 'kept'}, the example says {reason or 'kept'}")
        expect("" in examples.values(), "examples: no text that is kept")
        dropped = any(examples.values()) or not self.stage.reasons
        expect(dropped, "examples: no text that is dropped, and the stage has reasons")

    def test_the_same_document_gives_the_same_answer(self) -> None:
        docs = self.documents()
        first = [digest(answer) for answer in self.answers(docs)]
        again = [digest(answer) for answer in reversed(self.answers(list(reversed(docs))))]
        for doc, one, other in zip(docs, first, again, strict=True):
            expect(one == other, f"{shown(doc)}: another answer when it is judged in another order")
        twice = [digest(answer) for answer in self.answers([doc for doc in docs for _ in range(2)])]
        for doc, one, *both in zip(docs, first, twice[::2], twice[1::2], strict=True):
            expect([one, one] == both, f"{shown(doc)}: another answer the second time")

    def test_another_process_gives_the_same_answers(self, tmp_path: Path) -> None:
        """After pickling, as in workers, and with another order of sets (PYTHONHASHSEED)."""
        docs, path = self.documents(), tmp_path / "stage.pickle"
        try:
            path.write_bytes(
                pickle.dumps((self.stage, self.params(), [replace(doc, meta={**doc.meta}) for doc in docs]))
            )
        except Exception as error:  # noqa: BLE001 - pickle raises what it likes
            expect(False, f"the stage cannot be pickled, functions and classes of a module can: {error}")
        here = [digest(answer) for answer in self.answers(docs)]
        seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        places = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(  # noqa: S603 - this interpreter, and a file of ours
            [sys.executable, "-c", "from refinery.testing.answers import main; main()", str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": places},
        )
        expect(done.returncode == 0, f"another process ends with: {done.stderr.strip()[-2000:]}")
        for doc, one, other in zip(docs, here, done.stdout.split(), strict=True):
            expect(one == other, f"{shown(doc)}: another answer in another process")

    def test_documents_are_left_as_they_are(self) -> None:
        docs = [replace(doc, meta={**doc.meta}) for doc in self.documents()]
        before = [digest(doc) for doc in docs]
        self.answers(docs)
        for doc, one in zip(docs, before, strict=True):
            expect(digest(doc) == one, f"{shown(doc)}: the stage changes the document that it is given")

    def test_what_is_kept_is_the_same_document(self) -> None:
        for doc, made, number in self.emitted():
            expect(isinstance(made, self.stage.output), f"{shown(doc)}: {type(made).__name__} returned")
            for name in ("source", "origin", "position"):
                if hasattr(made, name):
                    expect(getattr(made, name) == getattr(doc, name), f"{shown(doc)}: its {name} is another one")
            if not isinstance(made, Document):
                continue
            if is_clean(getattr(doc, "text", "")):
                expect(is_clean(made.text), f"{shown(doc)}: a lone surrogate is in the text, and was not before")
                allowed = {part_id(doc, made.text, number)} if self.stage.splits else {document_id(made.text)}
                allowed |= {doc.id} if isinstance(doc, Document) and not self.stage.splits else set()
                expect(made.id in allowed, f"{shown(doc)}: an id that is neither its own nor that of the new text")
        expect(any(True for _ in self.emitted()), "no document is kept")

    def test_notes_are_declared(self) -> None:
        known = {note.name: note.type for note in (*self.stage.notes, *self.stage.asked_notes(self.params()))}
        for doc, made, *_ in self.emitted():
            for name, value in made.meta.items():
                if name in doc.meta and doc.meta[name] == value:
                    continue
                expect(name in known, f"{shown(doc)}: the note {name!r} is not declared")
                fits = type(value) is known[name] and (not isinstance(value, float) or math.isfinite(value))
                expect(fits, f"{shown(doc)}: the note {name} is {value!r}, {known[name].__name__} declared")

    def test_refusals_are_declared(self) -> None:
        reasons, names = {reason.name for reason in self.stage.reasons}, dict[str, set[str]]()
        docs = self.documents()
        for doc, answer in zip(docs, self.answers(docs), strict=True):
            if isinstance(answer, Exception):
                continue
            odd = [name for name in answer.found if not FOUND.fullmatch(name)]
            expect(not odd, f"{shown(doc)}: {odd[:1]} found, group/name is needed")
            expect(len(set(answer.found)) == len(answer.found), f"{shown(doc)}: something is found twice")
            expect(math.isfinite(answer.value), f"{shown(doc)}: {answer.value} scored, a finite number is needed")
            drop = answer.result
            if not isinstance(drop, Drop):
                continue
            expect(drop.reason in reasons, f"{shown(doc)}: dropped for {drop.reason!r}, which is not declared")
            expect(
                names.setdefault(drop.reason, set(drop.measured)) == set(drop.measured),
                f"{shown(doc)}: {drop.reason} measures {sorted(drop.measured)}, and others before it something else",
            )
            for name, value in drop.measured.items():
                scalar = value is None or type(value) in (str, float, int)
                expect(
                    scalar, f"{shown(doc)}: {name} of {drop.reason} is {value!r}, a text, a number or None is needed"
                )

    def test_a_reason_that_names_a_threshold_follows_it(self) -> None:
        """So that `refinery try` can say what was measured: the value at which the answer turns is beyond it."""
        params, stage = self.params(), self.stage
        resource = resource_of(stage, params)
        for number, (text, reason) in enumerate(self.examples().items()):
            doc = self.document(text, number)
            every = readings(stage, params, lambda other, doc=doc: stage.judge(doc, *resource, params=other))  # type: ignore[misc]
            found = [reading for reading in every if reason and reading.rule.reason == reason]
            beyond = [
                reading
                for reading in found
                if reading.value is not None
                and (reading.value < reading.rule.threshold) == reading.rule.is_least
                and reading.drops
            ]
            named = ", ".join(reading.rule.key for reading in found)
            expect(not found or bool(beyond), f"{text[:60]!r}: dropped for {reason} whatever {named} is")

    # --- hostile input ----------------------------------------------------------------------------------------------

    def test_hostile_texts_are_survived(self) -> None:
        """An exception costs the document, so none is raised; but UnicodeError for a lone surrogate, which readers let
        into no pipeline."""
        params = self.params()
        resource = resource_of(self.stage, params)
        large = {f"a million characters, {shape}": long_text(shape, LARGE) for shape in self.shapes}
        for number, (name, text) in enumerate({**HOSTILE, **large}.items()):
            try:
                answer = judged(self.stage, params, resource, self.document(text, number))
            except Exception as error:  # noqa: BLE001 - whatever the stage raises
                allowed = isinstance(error, UnicodeError) and not is_clean(text)
                expect(allowed, f"{name}: {type(error).__name__} raised: {error}")
                continue
            expect(is_answer(answer), f"{name}: {answer.result!r:.80} returned, a document or a Drop is needed")

    def test_time_grows_with_the_text(self) -> None:
        params = self.params()
        resource = resource_of(self.stage, params)
        for shape in self.shapes:
            short, long = (
                min(self._seconds(params, resource, long_text(shape, size)) for _ in range(runs))
                for size, runs in ((SHORT, 2), (LONG, 1))
            )
            if long > max(NOTICED, MOST_GROWTH * short):  # once more: a machine pauses
                long = min(long, self._seconds(params, resource, long_text(shape, LONG)))
            grown = long <= max(NOTICED, MOST_GROWTH * short)
            expect(grown, f"{shape}: {short:.2f} s for {SHORT:,} characters, {long:.2f} s for {LONG:,}")

    def _seconds(self, params: Any, resource: tuple[Any, ...], text: str) -> float:
        doc, start = self.document(text, 0), time.process_time()
        judged(self.stage, params, resource, doc)
        return time.process_time() - start

    # --- in a pipeline ----------------------------------------------------------------------------------------------

    def test_a_pipeline_accounts_for_every_document(self) -> None:
        docs = self.documents()
        kept, counts = run_in_pipeline(self.stage, self.params(), docs)
        dead = sorted(reason for outcome, reason in counts if outcome == "dead")
        expect(not dead, f"dead letters: {', '.join(dead)}")
        total: dict[str, int] = {}
        for (outcome, _), documents in counts.items():
            total[outcome] = total.get(outcome, 0) + documents
        left = total.get("kept", 0) - total.get("created", 0) + total.get("dropped", 0)
        expect(left == total["in"] == len(docs), f"{len(docs)} documents in, {left} kept or dropped")
        want = sorted(digest(made) for answer in self.answers(docs) for made in kept_of(answer))
        expect(sorted(map(digest, kept)) == want, "other documents come out of a pipeline than the judge returned")


def is_answer(answer: Any) -> bool:
    """Whether it is a document, or several, or a Drop, with or without what was found."""
    return isinstance(answer.result, Drop) or all(
        hasattr(made, "meta") and hasattr(made, "id") for made in kept_of(answer)
    )


def is_clean(text: str) -> bool:
    """Whether a text has no lone surrogate."""
    return text.isascii() or not re.search("[\ud800-\udfff]", text)


def shown(doc: Any) -> str:
    """A document as messages name it."""
    return f"{getattr(doc, 'text', getattr(doc, 'content', ''))[:60]!r}"
