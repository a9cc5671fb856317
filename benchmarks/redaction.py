"""Secrets and personal data, span by span, beside presidio, gitleaks, detect-secrets and CredSweeper: two tables.

    python -m benchmarks.redaction --secrets secrets/dev.jsonl.gz --pii pii/dev.jsonl.gz --gitleaks go/bin/gitleaks

Peers, in an environment of their own: `pip install presidio-analyzer spacy detect-secrets credsweeper`, and
`go install github.com/zricethezav/gitleaks/v8@latest`. What is not installed is left out with a line that says so.
presidio runs its pattern recognisers (English and those of countries) over a blank spaCy pipeline, without a model.

Sets. "made": keys in their issuers' forms, passwords in sentences of many languages and in calls, and look-alikes
(made_secrets.py, made_personal.py). "labelled", for secrets: rows of a file with `findings`, CredSweeper's own labels,
of which those of high and medium severity are to be found (it leaves real forms without a label, so these rows
count only for recall), and rows that are `clean` or as a whole `secret`, which count only for precision; for
personal data rows with `spans`.

A labelled span is found where matches cover every character of it: nothing of it is left. A match is right where it
overlaps a labelled span (of its type, for personal data). Rows labelled in part count only for recall.
"""

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.made_personal import made_personal
from benchmarks.made_secrets import made_secrets
from benchmarks.pii import LABELS, UNCHECKED, rows
from refinery.transforms.filter.pii import PiiParams, find_pii
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets

Span = tuple[int, int, str]
Finder = Callable[[list[str]], list[list[Span]]]
CREDENTIAL = "secret"


class Labelled(NamedTuple):
    """A text, the spans that are to be found, others that a match may be, and whether there are no more."""

    text: str
    spans: list[Span]
    others: list[Span]
    whole: bool


def places(text: str, value: str, kind: str) -> Iterator[Span]:
    """Wherever a value stands.

    >>> list(places("ab ab", "ab", "x"))
    [(0, 2, 'x'), (3, 5, 'x')]
    """
    at = text.find(value) if value else -1
    while at >= 0:
        yield at, at + len(value), kind
        at = text.find(value, at + len(value))


# --- sets -----------------------------------------------------------------------------------------------------------


def secret_sets(path: Path | None, count: int) -> dict[str, list[Labelled]]:
    """Made secrets, and those of a labelled file."""
    sets = {
        "made": [
            Labelled(made.text, list(places(made.text, made.secret or "", CREDENTIAL)), [], True)
            for made in made_secrets(count, seed=1)
        ]
    }
    labelled = []
    for row in rows(path) if path else ():
        text = row["text"]
        if row["label"] == "clean":
            labelled.append(Labelled(text, [], [], True))
        elif "findings" in row and row["label"] == "secret":
            severe = [found for found in row["findings"] if found["severity"] in ("high", "medium")]
            labelled.append(Labelled(text, [span for found in severe for span in finding(text, found)], [], False))
        elif row["label"] == "secret":  # the whole row is one
            labelled.append(Labelled(text, [], [(0, len(text), CREDENTIAL)], True))
    return sets | ({"labelled": labelled} if labelled else {})


def finding(text: str, found: dict[str, Any]) -> list[Span]:
    """Where a finding of CredSweeper stands: by its line and column, else the first place of its value."""
    lines = text.split("\n")
    if found.get("found_in_line") and 0 < found["line_num"] <= len(lines):
        start = sum(map(len, lines[: found["line_num"] - 1])) + found["line_num"] - 1 + found["value_start"]
        if text.startswith(found["value"], start):
            return [(start, start + len(found["value"]), CREDENTIAL)]
    return list(places(text, found["value"], CREDENTIAL))[:1]


def pii_sets(path: Path | None, count: int) -> dict[str, list[Labelled]]:
    """Made personal data, and that of a labelled file."""
    sets = {
        "made": [
            Labelled(made.text, [(made.start, made.end, LABELS[made.type])] if made.type else [], [], True)
            for made in made_personal(count, seed=1)
        ]
    }
    labelled = []
    for row in rows(path) if path else ():
        if row["spans"] is None:
            continue
        placed = [span for span in row["spans"] if span.get("start") is not None]
        spans = [(span["start"], span["end"], LABELS[span["type"]]) for span in placed if span["type"] in LABELS]
        others = [(span["start"], span["end"], "national_id") for span in placed if span["type"] in UNCHECKED]
        labelled.append(Labelled(row["text"], spans, others, not row.get("kind", "").endswith("recall_only")))
    return sets | ({"labelled": labelled} if labelled else {})


# --- finders --------------------------------------------------------------------------------------------------------


def our_secrets(texts: list[str]) -> list[list[Span]]:
    params = SecretsParams()
    return [[(span.start, span.end, CREDENTIAL) for span in find_secrets(text, params)] for text in texts]


def our_pii(texts: list[str]) -> list[list[Span]]:
    params = PiiParams(private_ip=True)
    return [[(span.start, span.end, span.kind) for span in find_pii(text, params)] for text in texts]


def presidio(texts: list[str]) -> list[list[Span]]:
    """Its pattern recognisers, threshold 0.4 as in its demo."""
    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "en_core_web_sm"}])
    engine.nlp = {"en": spacy.blank("en")}
    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    for recognizer in list(registry.recognizers):
        if "Spacy" in type(recognizer).__name__:
            registry.remove_recognizer(recognizer.name)
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    found = []
    for text in texts:
        results = analyzer.analyze(text, language="en", score_threshold=0.4)
        kinds = {**LABELS, **dict.fromkeys(UNCHECKED, "national_id")}
        found.append([(r.start, r.end, kinds[r.entity_type]) for r in results if r.entity_type in kinds])
    return found


def _in_files(texts: list[str], folder: Path) -> None:
    for number, text in enumerate(texts):
        (folder / f"{number:06d}.txt").write_text(text, newline="")


def _located(texts: list[str], values: Iterable[tuple[int, str]]) -> list[list[Span]]:
    found: list[set[Span]] = [set() for _ in texts]
    for number, value in values:
        found[number].update(places(texts[number], value, CREDENTIAL))
    return [sorted(spans) for spans in found]


def gitleaks(program: Path) -> Finder:
    """Its default rules over a folder of files."""

    def find(texts: list[str]) -> list[list[Span]]:
        with tempfile.TemporaryDirectory() as folder:
            inputs, report = Path(folder, "in"), Path(folder, "report.json")
            inputs.mkdir()
            _in_files(texts, inputs)
            command = [
                str(program),
                "dir",
                str(inputs),
                "-f",
                "json",
                "-r",
                str(report),
                "--no-banner",
                "--exit-code",
                "0",
            ]
            subprocess.run(command, check=True, capture_output=True)
            return _located(texts, ((int(Path(f["File"]).stem), f["Secret"]) for f in json.loads(report.read_text())))

    return find


def detect_secrets(texts: list[str]) -> list[list[Span]]:
    """Its default plugins and filters."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    with tempfile.TemporaryDirectory() as folder, default_settings():
        _in_files(texts, Path(folder))
        return _located(
            texts,
            (
                (number, secret.secret_value or "")
                for number in range(len(texts))
                for secret in scan_file(str(Path(folder, f"{number:06d}.txt")))
            ),
        )


def credsweeper(texts: list[str]) -> list[list[Span]]:
    """Its rules with its model, as its command runs them; documents, too (`--doc`)."""
    values: list[tuple[int, str]] = []
    for flags in ([], ["--doc"]):
        with tempfile.TemporaryDirectory() as folder:
            inputs, report = Path(folder, "in"), Path(folder, "report.json")
            inputs.mkdir()
            _in_files(texts, inputs)
            command = [sys.executable, "-m", "credsweeper", "--path", str(inputs), "--save-json", str(report), *flags]
            subprocess.run(command, check=True, capture_output=True)
            for candidate in json.loads(report.read_text()) if report.exists() else ():
                for line in candidate["line_data_list"]:
                    values.append((int(Path(line["path"]).stem), line["value"]))
    return _located(texts, values)


# --- scores ---------------------------------------------------------------------------------------------------------


def score(labelled: list[Labelled], found: list[list[Span]]) -> Counter[str]:
    """Spans, spans of which nothing is left, matches, matches that are right.

    >>> row = Labelled("key abcd", [(4, 8, "secret")], [], True)
    >>> sorted(score([row, row], [[(4, 8, "secret")], [(4, 6, "secret"), (0, 3, "secret")]]).items())
    [('found', 1), ('matches', 3), ('right', 2), ('spans', 2)]
    """
    counts: Counter[str] = Counter()
    for row, matches in zip(labelled, found, strict=True):
        for start, end, kind in row.spans:
            covered = {at for a, b, k in matches if k == kind for at in range(max(a, start), min(b, end))}
            counts["spans"] += 1
            counts["found"] += len(covered) == end - start
        if row.whole:
            counts["matches"] += len(matches)
            counts["right"] += sum(
                any(k == kind and a < end and start < b for start, end, kind in (*row.spans, *row.others))
                for a, b, k in matches
            )
    return counts


def ratio(part: int, whole: int) -> str:
    """A share, or a dash for one of nothing."""
    return f"{part / whole:.3f}" if whole else "–"


def lines(subject: str, sets: dict[str, list[Labelled]], finders: dict[str, Finder]) -> Iterator[list[Any]]:
    """Rows of the table."""
    for name, labelled in sets.items():
        texts = [row.text for row in labelled]
        for side, find in finders.items():
            begun = time.process_time()
            counts = score(labelled, find(texts))
            seconds = time.process_time() - begun
            yield [
                subject, name, side, len(texts), counts["spans"], ratio(counts["found"], counts["spans"]),
                ratio(counts["right"], counts["matches"]), f"{seconds:.1f}",
            ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--secrets", type=Path, help="labelled rows")
    parser.add_argument("--pii", type=Path, help="labelled rows")
    parser.add_argument("--gitleaks", type=Path, help="its program")
    parser.add_argument("--count", type=int, default=3, help="values of each made form and place")
    options = parser.parse_args()
    secrets: dict[str, Finder] = {"ours": our_secrets}
    personal: dict[str, Finder] = {"ours": our_pii}
    if options.gitleaks:
        secrets["gitleaks"] = gitleaks(options.gitleaks)
    for package, finder in (("detect_secrets", detect_secrets), ("credsweeper", credsweeper)):
        if importlib.util.find_spec(package):
            secrets[package] = finder
        else:
            print(f"{package} is not installed")
    if importlib.util.find_spec("presidio_analyzer"):
        personal["presidio"] = presidio
    else:
        print("presidio_analyzer is not installed")
    print(f"Python {platform.python_version()}, {date.today()}")
    print("| of | set | side | texts | spans | recall | precision | s of CPU time (ours and Python's) |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for table in (
        lines("secrets", secret_sets(options.secrets, options.count), secrets),
        lines("personal data", pii_sets(options.pii, options.count), personal),
    ):
        for row in table:
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
