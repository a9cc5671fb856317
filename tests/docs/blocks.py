"""The fenced blocks of README and docs/, and what is done with each. `test_snippets.py` runs them.

A block's language says what it is: `yaml` is read as a recipe (tests/test_docs.py), `python` runs, every line of `sh`
runs, `text` is no code, `console` shows a command after $ and what it printed. Code of other tools, in coming-from.md,
is `py`, `yml` and `bash`, and is parsed. What `test_snippets.py` does not run is declared here, with the reason, and
nowhere else.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ELSEWHERE = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "terraform/README.md")]
COMMENT = re.compile(r"\s{3,}#?|\s+#\s")  # begins what is said about a command
OPTIONAL = re.compile(r"(?<=\s)\[[^\]]*\]")
OTHERS = {"py", "yml", "bash"}
LANGUAGES = {"yaml", "python", "sh", "text", "console"} | OTHERS
FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Subjects whose commands are generated from the command line's own examples, or only parsed as those are
# (tests/pipelines/shell/test_help.py, tests/tools).
GENERATED = {"commands"}

# Subjects of which another test runs the blocks, on inputs of its own, and looks at what comes out.
RUN_ELSEWHERE = {"steps": "tests/docs/test_steps.py"}

# Python that another test runs, or that is a piece: (subject, beginning of the block) -> where, or why not.
PYTHON_ELSEWHERE = {
    ("README", ""): "tests/test_loader_docs.py",
    ("loader", ""): "tests/test_loader_docs.py",
    ("frameworks", ""): "needs PyTorch: tests/frameworks does what it shows",
    ("recipes", "from refinery.loader import TokenStream  # conv"): "tests/pipelines/whole_runs/test_chat_run.py",
    ("beam-data-loss", ""): "loses data: 2 GB through a runner that holds them six times",
    ("volunteers", ""): "tests/pipelines/corpus/export/test_distribution.py",
    ("extending", '"""Documents that are mostly digits'): "tests/pipelines/test_adding_a_stage.py",
    ("extending", '"""The writer keeps'): "tests/pipelines/test_adding_a_writer.py",
    ("extending", '"""The stage keeps'): "tests/pipelines/test_adding_a_stage.py",
    ("extending", '"""The command keeps'): "tests/pipelines/cli/test_adding_a_command.py",
    ("extending", "from dataclasses import replace"): "tests/pipelines/test_adding_a_lane.py",
    ("extending", '"""How long sentences'): "tests/pipelines/test_adding_a_column.py",
    ("extending", '"""Mailboxes'): "tests/pipelines/test_adding_a_reader.py",
    ("extending", '"""The reader of mailboxes'): "tests/pipelines/test_adding_a_reader.py",
    ("extending", '"""Arrow'): "tests/pipelines/test_adding_an_export.py",
    ("extending", '"""The format keeps'): "tests/pipelines/test_adding_an_export.py",
    ("extending", '"""`refinery largest-shards`'): "tests/pipelines/cli/test_adding_a_command.py",
    ("extending", '"""Sentences that'): "tests/pipelines/test_adding_a_cut.py",
    ("extending", '"""The cut of sentences'): "tests/pipelines/test_adding_a_cut.py",
    ("steps", "import duckdb"): "needs DuckDB: tried with 2.0.1; tests/docs/test_steps.py counts the same labels",
    ("steps", "import polars"): "needs Polars: tried with 2.1.0; tests/docs/test_steps.py counts the same labels",
    ("extending", "docs | DIGITS"): "tests/transforms/core/test_stage.py applies a stage so",
}

# Lines of `sh` that are not run: the beginning of a line, or a pattern of it -> why. The flags of `refinery` and of the
# benchmarks, and the targets of `make`, are checked all the same.
NOT_RUN = {
    r"make ": "the target exists; continuous integration runs them",
    r"REFINERY_TEST\w*=": "the tests themselves",
    r"(PYTHONPATH=\. )?(\.venv/bin/)?python (-m benchmarks\.|benchmarks/)": "minutes, on data that is not at hand",
    r"SANITIZE_TESTS=0 ": "minutes of fuzzing",
    r"\. \.venv/bin/activate": "of the shell",
    r"(\.venv/bin/)?pip ": "installs",
    r"(\.venv/bin/)?python examples/": "needs PyTorch: tests/test_examples.py and test_distribution.py run them",
    r"(\.venv/bin/)?torchrun ": "training frameworks: tests/frameworks",
    r"refinery export .*--format arrow_ipc:": "tests/pipelines/test_adding_an_export.py",
    r"refinery .*out/texts": "tests/pipelines/test_adding_a_writer.py, test_text_corpora.py and run/tokenizing",
    r"refinery browse ": "serves until it is stopped: tests/pipelines/corpus/browse",
    r"GOBIN=|python -m (apache_beam|refinery\.pipelines\.runners)\.|refinery .*--runner P": "tests/engines",
    r"refinery cluster |jobs/run\.sh|kubectl ": "clusters: tests/engines, tests/pipelines/runners/cluster",
    r"refinery compare ": "two corpora: tests/pipelines/corpus/compare",
    r"cmp ": "compares what those wrote",
    r"gcloud |cp terraform/|terraform |eval ": "Google Cloud",
    r"refinery .*\b(gs|https|s3|hf)://(?!example)": "another machine's files",
    r"refinery acquire ": "downloads",
    r"export HF_TOKEN=": "of the shell",
    r"refinery .*--push hub ": "another machine: tests/pipelines/corpus/export/push",
    r"(\w+=\S+ )?refinery refine .*--track ": "another machine's services: tests/pipelines/progress/track",
    r"refinery refine web\.yaml ": "a crawl that is not at hand: tests/pipelines/whole_runs/test_rights_run.py",
    r"refinery opt-outs 'robotstxt": "collected files of hosts: tests/transforms/rights",
    r"refinery .*(recipes/|out/)chat": "conversations: tests/pipelines/whole_runs/test_chat_run.py",
    r"refinery .*(recipes/|out/)code": "repositories: tests/pipelines/whole_runs/test_code_lane.py",
    r"refinery .*\brecipes/web\.yaml": "a crawl that is not at hand: tests/pipelines/run/test_ready_recipes.py",
    r"refinery export .*--to megatron": "packed rows: tests/pipelines/corpus/adopt/test_megatron_export.py",
    r"\.venv/bin/python -m pytest ": "the tests themselves",
    r"refinery adopt data/": "files of Megatron's tools: tests/pipelines/corpus/adopt",
    r"refinery .*(october|november|out/tokens)": "two corpora: tests/pipelines/corpus/export/test_token_export.py",
    r"refinery mix views/half --corpus": "two versions of a corpus: tests/pipelines/corpus/remove/test_views.py",
    r"refinery train-(perplexity|toxicity) ": "data sets that are not at hand: tests/pipelines/training",
}


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    body: str
    before: str
    """the text between the block above and this one"""

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """(command, its comment) of every line of `sh`, continued lines joined, without what is in [brackets]."""
        for line in re.sub(r"\s*\\\n\s*", " ", self.body).splitlines():
            command, *comment = COMMENT.split(line.strip(), maxsplit=1)
            if command and not command.startswith("#"):
                yield OPTIONAL.sub("", command).strip(), "".join(comment)


def page_name(path: Path) -> str:
    """A page as tests name it: README.md, or its path below docs/."""
    return path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else path.name


def in_subject(page: str, subject: str) -> bool:
    """Whether a page is docs/SUBJECT.md, or one of those in docs/SUBJECT/."""
    return page == f"{subject}.md" or page.startswith(f"{subject}/")


def is_generated(page: str) -> bool:
    """Whether a page's commands are those of the command line, which other tests parse."""
    return any(in_subject(page, subject) for subject in GENERATED)


def runs_elsewhere(page: str) -> bool:
    """Whether another test runs the blocks of a page."""
    return any(in_subject(page, subject) for subject in RUN_ELSEWHERE)


def subject_text(subject: str) -> str:
    """All pages of a subject, one below the other: docs/SUBJECT.md, then docs/SUBJECT/."""
    return "\n".join(path.read_text() for path in PAGES if in_subject(page_name(path), subject))


def blocks(path: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text, found, end = path.read_text(), [], 0
    for fence in FENCE.finditer(text):
        found.append(Block(page_name(path), fence[1], fence[2], text[end : fence.start()]))
        end = fence.end()
    return found


def elsewhere(block: Block) -> str:
    """Where a Python block runs, if not here."""
    places = (
        place
        for (subject, start), place in PYTHON_ELSEWHERE.items()
        if in_subject(block.page, subject) and block.body.startswith(start)
    )
    return next(places, "")


def not_run(command: str) -> str:
    """The pattern of NOT_RUN that a command is one of."""
    return next((pattern for pattern in NOT_RUN if re.match(pattern, command)), "")


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)
