"""A corpus whose names, sources, reasons, inputs and hosts say what a page must not do."""

import shutil
from pathlib import Path
from typing import Any

from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.published.statistics.published import STATISTICS, dump_statistics, parse_statistics
from tests.corpus_factory import edit_manifest

NASTY = (
    "</td><script>alert(1)</script> | [x](javascript:alert) ![i](http://evil.example/i) \n# heading\n---\n"
    "```\n`a` <b> https://evil.example www.evil.example a@evil.example &lt; \u202egnp.exe\u202c {{x}} $y$"
)


def hostile_corpus(corpus: Path, root: Path) -> Path:
    """A copy of a corpus, without work/, that says NASTY wherever it can."""
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    run = unseal((root / RUN).read_bytes(), RUN)
    for entry in run["inputs"]:
        entry["path"] = f"{entry['path']}{NASTY}"
    run["stages"]["clean"][0]["libraries"] = {NASTY: NASTY}
    run["stages"]["shards"][0]["files"] = [[NASTY, "ab" * 32]]
    (root / RUN).write_bytes(seal(run))
    statistics = parse_statistics((root / STATISTICS).read_bytes())
    plain = statistics.model_dump(mode="json")
    for point in plain["points"]:
        for category in point["categories"]:
            category["values"][0]["value"] = NASTY[:200]
        for host in (point["hosts"] or {"top": []})["top"]:
            host["host"] = NASTY[:200]
    (root / STATISTICS).write_bytes(dump_statistics(type(statistics).model_validate_json(_json(plain))))

    def edit(payload: dict[str, Any]) -> None:
        payload["name"] = NASTY
        payload["previous"] = {"removed": NASTY}
        payload["versions"]["refinery"] = NASTY
        payload["recipe"]["sources"][0]["domain"] = NASTY
        payload["recipe"]["url"] = {"blocked_domains": [NASTY]}
        for row in payload["funnel"]:
            row["dropped"] = {f"{NASTY}{reason}": count for reason, count in row["dropped"].items()}

    edit_manifest(root, edit)
    return root


def _json(plain: Any) -> bytes:
    import orjson

    return orjson.dumps(plain)
