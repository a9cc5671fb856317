"""The rules of tools/english.py fire on bad sentences, with the right line, and on no good ones."""

from pathlib import Path

import pytest

from tests.sampling import one_commit_in_four
from tools.english import ROOTS, RULES, files, hits, main
from tools.prose import of_html, of_markdown, of_python, of_script, passages

ROOT = Path(__file__).parents[2]

# What is wrong -> the phrase that is reported. Every rule has at least one.
BAD = {
    "Nothing is read but for the manifest.": "but for",
    "The columns, as the manifest has them.": "as the manifest has them",
    "Values such as the input has them.": "such as the input has them",
    "Two phases are taken over from that run.": "taken over",
    "The size is noted beside it.": "is noted",
    "It removes what is of the source.": "what is of",
    "There is but one worker.": "is but one",
    "The file has other bytes than were sent.": "other bytes than",
    "Another reason than the recipe's.": "Another reason than",
    "Crawlers of one's own are named.": "of one's own",
    "It reads manifests alone.": "reads manifests alone",
    "The loader reads no text, nor compiles any kernel.": "nor compiles any",
    "Names are sorted, so that equal runs are equal.": "so that",
    "Leave it out, for it is derived.": "for it is",
    "The folder is no corpus.": "is no corpus",
    "It is a number, else the recipe is refused.": "else the recipe is",
    "Of clean documents, the filter removes most.": "Of clean documents, the",
    "This is what happens: the worker reads its input in full: then it stops.": (
        "the worker reads its input in full: then it"
    ),
    "The HTML is no longer at hand.": "at hand",
    "No key can be had here.": "can be had",
    "The model that comes along is small.": "comes along",
    "The flag does without them.": "does without",
    "Give such a one.": "such a one",
    "The reason stands in the table.": "stands in the",
    "Other files are what they were.": "are what they were",
    "Raises as the store.": "Raises as",
    "Sources are cut behind the encoder.": "behind the encoder",
    "The user is told when it ends.": "is told",
    "The export tells of its corpus.": "tells of",
    "The budget bears ten failures.": "bears",
    "Damaged lines are mended.": "mended",
    "A document and its twin.": "twin",
    "The deed is recorded.": "deed",
    "The record lies at this offset.": "lies at",
    "The shards are written anew.": "anew",
    "It would wait for ever.": "for ever",
    "The file and the name thereof.": "thereof",
    "Read this first of all.": "first of all",
}
GOOD = [
    "Everything except the manifest is read, but that needs a key.",
    "This is a corpus as long as it has them.",
    "Another worker takes over after a crash.",
    "The mean is taken over all pages.",
    "Other tools are faster than this one.",
    "In other words, less than a gigabyte.",
    "The process runs alone, and settings alone do not count.",
    "Leave the folder alone.",
    "Names are sorted so that equal runs are equal.",
    "Neither file exists.",
    "There is no corpus, and the run is no longer active.",
    "The cost is no more than 1 GB.",
    "Or else the run fails.",
    "The name of the file, else the name of the folder.",
    "Of course, the order is stable.",
    "Of the 40 files, 3 are damaged.",
    "The phases are: clean, dedup, shards.",
    "Time: 12:30:45. Address: https://example.com: 443.",
    "On the other hand, the queue is behind a proxy.",
    "He told us nothing; the file says what to do.",
    "Indeed, this lies in the interval. Bear in mind the cost.",
    "The amendment names three recommendations.",
    "As of 2026 it has 12 members.",
    "The host stands in for the service.",
    "It works without a network.",
    "Raises the same errors as the store, for these reasons.",
]


@pytest.mark.parametrize("sentence", BAD)
def test_a_bad_sentence_is_reported_once(sentence: str) -> None:
    assert [hit.phrase for hit in hits("x", of_markdown(sentence))] == [BAD[sentence]]


@pytest.mark.parametrize("sentence", GOOD)
def test_a_good_sentence_is_not(sentence: str) -> None:
    assert list(hits("x", of_markdown(sentence))) == []


def test_every_rule_has_a_bad_sentence() -> None:
    found = {hit.rule for sentence in BAD for hit in hits("x", of_markdown(sentence))}
    assert found == set(RULES)


def test_better_wordings_are_good_english() -> None:
    assert [hit for rule in RULES for hit in hits("x", of_markdown(f"{rule.say}\n\n{rule.why}"))] == []


MARKDOWN = """# But for one

Prose that goes on, but
for this. `but for` and "but for" are quoted.

```sh
but for
```

<!-- keys: quality -->
| but for |
<!-- end -->

- an item
- another, [but for a link](but_for.md)

| a cell | a row but for the last |
"""

PYTHON = '''"""Public, but for one."""
import re
NAMES = ["but for"]
PATTERN = re.compile("but[for]")

def check(path: str, found: int) -> None:
    """First line.

    found: nothing but for the last.
    """
    raise ValueError(
        f"{path}: all were read, "
        f"but for {found} of them"
    )

def _private() -> None:
    """Of its author, but for others to read."""

class Public:
    def method(self) -> str:
        "Said but for this."
        return f"{'none but for ' + str(1)}"
'''


def lines(found: object) -> list[int]:
    return [hit.line for hit in hits("x", found) if hit.rule.pattern == r"\bbut for\b"]  # type: ignore[arg-type]  # any


def test_prose_of_markdown_is_read_without_code_quotations_and_generated_tables() -> None:
    assert lines(of_markdown(MARKDOWN)) == [1, 3, 15, 17]


def test_public_docstrings_and_literals_are_read() -> None:
    assert lines(of_python(PYTHON)) == [1, 3, 9, 13, 21, 22]


def test_texts_of_html_and_scripts_are_read() -> None:
    page = "<p>all\n<b>read</b>, but for one</p><code>but for</code><script>'but for'</script>"
    assert lines(of_html(page)) == [2]
    assert lines(of_script("let a = 1; // but for\nshow('<i>none</i> but for one', `x`, \"but for two\");")) == [2, 2]


def test_what_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vendor").mkdir()
    for name in ("page.md", "notes.txt", "vendor/page.md"):
        (tmp_path / name).write_text("All is well.\nNot here, but for this.\n")
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert told.splitlines()[0] == f"{tmp_path}/page.md:2: but for → except, apart from (reads as if translated)"
    assert len(told.splitlines()) == 2
    (tmp_path / "page.md").write_text("All is well.\n")
    assert main([str(tmp_path)]) == 0
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        list(files([tmp_path / "none"]))
    with pytest.raises(ValueError, match=r"only \.html, \.js, \.md, \.py files are read"):
        passages(tmp_path / "notes.txt")


@one_commit_in_four
def test_what_lint_reads_has_no_such_phrase(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert all((ROOT / name).exists() for name in ROOTS)
    assert main([]) == 0, capsys.readouterr().out
