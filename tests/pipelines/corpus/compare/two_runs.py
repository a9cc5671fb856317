"""Three small runs whose documents part ways in every manner that a comparison tells apart.

`a` keeps everything. `b` has rules, near-duplicate detection, redaction and a target, and lists nothing of what it
drops; `c` is `b` and lists all. Between `a` and the others one file moved, one was edited, one came and one went.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.corpus_factory import tokenizer_json
from tests.fork_server import fork_server
from tests.pipelines.small_runs import OFF

NEAR = 24  # pairs of near duplicates; a hash of where they are decides which of a pair stays
HOSTILE = "</script><script>alert(1)</script>\x1b[2J\u202e"
# Of a record that is another one in the edited file: what it was -> what it is then.
EDITED = ("other-text", "text-of-another", "broken", "short", "same")


def text(name: str, words: int = 30) -> str:
    """Words that no other text has."""
    return " ".join(f"{name}word{number}" for number in range(words))


def near(name: str, number: int) -> str:
    """Texts of one name are near duplicates of one another."""
    return f"{text(name, 60)} end{number}"


def main_rows() -> Iterator[str]:
    yield from (text(f"plain{n}") for n in range(20))
    yield from (text(f"short{n}", 8) for n in range(7))
    yield from (f"{text(f'mail{n}')} write to anna{n}@old-mill-gauges.net today" for n in range(5))
    yield from (near(f"near{n}", copy) for n in range(NEAR) for copy in range(2))
    yield from (text("copied") for _ in range(3))


def edited_rows(after: bool) -> Iterator[str]:
    for kind in EDITED:
        # Which of two equal texts stays is decided by a hash of where they are: of many pairs some go either way.
        for n in range(16 if kind == "text-of-another" else 4):
            before = text(f"{kind}{n}")
            yield (
                {
                    "other-text": text(f"now{n}"),
                    "text-of-another": text(f"plain{n}"),
                    "broken": "",
                    "short": text(f"cut{n}", 5),
                    "same": before,
                }[kind]
                if after
                else before
            )


def write(path: Path, texts: Iterator[str] | list[str]) -> None:
    """JSON lines of one length, so that each record stays where it is when its text becomes another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for n, each in enumerate(texts):
        url = f"https://{path.stem}.example/{n}{HOSTILE if n == 1 else ''}"
        line = json.dumps({"text": each, "url": url, "pad": ""})
        padded = line.replace('"pad": ""', f'"pad": "{"-" * (1200 - len(line))}"')
        lines.append(padded if each else padded.replace('{"text"', '{"text', 1) + "-")
    path.write_text("\n".join(lines) + "\n")


def recipe(folder: Path, names: list[str], **more: Any) -> dict[str, Any]:
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    return {
        "name": "small",
        "sources": [
            {"name": "s", "paths": [str(folder / name) for name in names]},
            {"name": "t", "paths": [str(folder / "target.jsonl")], "domain": "other"},
        ],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "rejects": {"rate": 0.0},
        "shards": {"validation": 0.2, "target_bytes": 8_000},
        "failures": {"grace": 100},
        **OFF,
        **more,
    }


def make_runs(folder: Path) -> None:
    """a/, b/ and c/ below `folder`, with their recipes and inputs."""
    write(folder / "main.jsonl", main_rows())
    write(folder / "edited.jsonl", edited_rows(after=False))
    write(folder / "here/moved.jsonl", [text(f"moved{n}") for n in range(6)])
    # Texts that `b` removes when it reads them elsewhere.
    write(folder / "gone.jsonl", [*(text(f"gone{n}") for n in range(5)), *(near(f"near{n}", 1) for n in range(NEAR))])
    write(folder / "new.jsonl", [text(f"new{n}") for n in range(4)])
    write(folder / "target.jsonl", [text(f"target{n}") for n in range(12)])
    refine(folder, "a", recipe(folder, ["main.jsonl", "edited.jsonl", "here/moved.jsonl", "gone.jsonl"]))
    write(folder / "edited.jsonl", edited_rows(after=True))
    write(folder / "there/moved.jsonl", [text(f"moved{n}") for n in range(6)])
    (folder / "here/moved.jsonl").unlink()
    rules: dict[str, Any] = {
        "near_dup": {"threshold": 0.75},
        "pii": {},
        "heuristics": {
            **dict.fromkeys(("repetition", "c4", "fineweb")),
            "basic": {"min_chars": 20},
            "gopher": {"min_words": 20, "stop_words": {}, "max_mean_word_chars": None},
        },
    }
    for name, rate in (("b", 0.0), ("c", 1.0)):
        told = recipe(
            folder, ["main.jsonl", "edited.jsonl", "there/moved.jsonl", "new.jsonl"], rejects={"rate": rate}, **rules
        )
        told["sources"][1]["target"] = 2_000
        refine(folder, name, told)


def refine(folder: Path, name: str, told: dict[str, Any]) -> None:
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(told))
    ended = fork_server().run(
        "refine", str(folder / f"{name}.yaml"), "--workers", "0", "--quiet", "--output", str(folder / name)
    )
    assert ended.code == 0, ended.out + ended.err
