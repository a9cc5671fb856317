"""Nothing in a document makes Refinery fetch, start or write anything: the processes are watched from below Python."""

import gzip
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from tests.pipelines.inputs import ROOT, run
from tests.sampling import one_commit_in_four, sampled
from tests.transforms.read_fixtures import http, warc_record
from tests.transforms.tokenizer_files import byte_level_spec, write

ELSEWHERE = "http://192.0.2.1"  # TEST-NET-1: nobody's address

PROSE = "The otters of the northern coast keep a favourite stone in a pouch, and with it they open the shells. " * 6

BROWSERS = f"""<html><head><base href="{ELSEWHERE}/"><meta http-equiv="refresh" content="0;url={ELSEWHERE}">
<link rel=stylesheet href="{ELSEWHERE}/a.css"><script src="{ELSEWHERE}/a.js"></script></head><body>
<img src="{ELSEWHERE}/a.png"><iframe src="{ELSEWHERE}"></iframe><object data="{ELSEWHERE}/o"></object><p>TEXT</p>
</body></html>"""
XINCLUDE = f"""<html xmlns:xi="http://www.w3.org/2001/XInclude"><body>
<xi:include href="{ELSEWHERE}/x"/><p>TEXT</p></body></html>"""
STYLESHEET = f"""<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="{ELSEWHERE}/a.xsl"?>
<html><body><p>TEXT</p></body></html>"""
COMMANDS = """<html><body><p>{{7*7}} ${7*7} $(touch pwned) `touch pwned` __import__('os').system('touch pwned')
!!python/object/apply:os.system ['touch pwned'] TEXT</p></body></html>"""
HOSTILE = {
    "external DTD": f'<!DOCTYPE html SYSTEM "{ELSEWHERE}/evil.dtd"><html><body><p>TEXT</p></body></html>',
    "external entity": f'<!DOCTYPE html [<!ENTITY x SYSTEM "{ELSEWHERE}/x">]><html><body><p>TEXT &x;</p></body></html>',
    "local entity": '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><p>TEXT &x;</p></html>',
    "XInclude": XINCLUDE,
    "fetched by browsers": BROWSERS,
    "XSLT": STYLESHEET,
    "commands": COMMANDS,
}

URLS = (
    f"{ELSEWHERE}/page",
    "file:///etc/passwd",
    "gs://bucket/object",
    "../pwned",
    "http://no.such.host.invalid/$(touch pwned)",
    "|touch pwned",
    "http://[::ffff:192.0.2.1]/",
)


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("watch") / "watch.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    source = ROOT / "tests" / "native" / "watch.c"
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-fPIC", "-shared", source, "-o", library, "-ldl"], check=True)
    return library


def watched(watch: Path, log: Path) -> dict[str, str]:
    log.touch()
    return {"LD_PRELOAD": str(watch), "WATCH_LOG": str(log)}


def test_the_watch_sees_what_must_not_happen(watch: Path, tmp_path: Path) -> None:
    script = (
        "import socket, subprocess, contextlib\n"
        "for host in ('192.0.2.1', 'no.such.host.invalid'):\n"
        "    with contextlib.suppress(OSError): socket.create_connection((host, 9), 0.1)\n"
        "with contextlib.suppress(OSError): socket.socket().connect(('192.0.2.1', 9))\n"
        "with contextlib.suppress(OSError): socket.create_connection(('127.0.0.1', 9), 0.1)\n"
        "subprocess.run(['true'])\n"
    )
    log = tmp_path / "log"
    environment: Mapping[str, str] = {**os.environ, **watched(watch, log)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    kinds = [tuple(line.split()[:2]) for line in log.read_text().splitlines()]
    assert kinds[:3] == [("lookup", "192.0.2.1"), ("lookup", "no.such.host.invalid"), ("connect", "192.0.2.1")]
    assert {kind for kind, _ in kinds[3:]} == {"exec"}


@one_commit_in_four
@pytest.mark.parametrize(
    ("engine", "workers"), sampled("engines without a network", [("blocks", 1), ("trafilatura", 0)], 1)
)
def test_documents_reach_nothing(watch: Path, tmp_path: Path, engine: str, workers: int) -> None:
    pages = [template.replace("TEXT", f"{PROSE} {name} {i}") for i, (name, template) in enumerate(HOSTILE.items())]
    records = [
        warc_record(http(page.encode(), [f"Content-Type: {kind}"]), url=url)
        for page in pages
        for kind in ("text/html", "application/xhtml+xml")
        for url in URLS[:3]
    ]
    (tmp_path / "pages.warc.gz").write_bytes(b"".join(map(gzip.compress, records)))
    rows = [{"text": f"{PROSE} {page} {i}", "url": url} for i, (page, url) in enumerate(zip(pages, URLS, strict=True))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "name": "hostile",
        "sources": [
            {"name": "pages", "paths": [str(tmp_path / "pages.warc.gz")], "format": "warc"},
            {"name": "rows", "paths": [str(tmp_path / "rows.jsonl")], "format": "jsonl"},
        ],
        "extract": {"engine": engine},
        "url": None,
        "heuristics": None,
        "quality": None,
        "near_dup": None,
        "exact_dup": False,
    }
    recipe["tokenizer"] = {"path": write(tmp_path / "tokenizer.json", byte_level_spec([]))}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    log = tmp_path / "log"
    done = run(
        "refine", tmp_path / "recipe.yaml", "--output", tmp_path / "corpus", "--workers", workers,
        environment=watched(watch, log), alone=True,
    )  # fmt: skip
    kept = sum(shard.documents for shard in read_manifest(open_store(tmp_path / "corpus")).shards)
    assert kept > len(records) * 0.8, done.stdout
    started = [line for line in log.read_text().splitlines() if "refinery.pipelines.runners.worker" not in line]
    assert started == []
    assert not [path for path in (ROOT / "pwned", ROOT.parent / "pwned", tmp_path / "pwned") if path.exists()]
    texts = b"".join(path.read_bytes() for path in (tmp_path / "corpus").rglob("*.parquet"))
    assert b"root:x:0" not in texts
