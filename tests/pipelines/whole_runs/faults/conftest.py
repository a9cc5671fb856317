"""The run that faults are compared with."""

import json
from pathlib import Path

import pytest

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_work, command, folder_files


@pytest.fixture(scope="package")
def reference(small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every file of a run to which nothing happens."""
    prefix = tmp_path_factory.mktemp("reference") / "out"
    assert forks.run(*command(small, prefix)).code == 0
    files = folder_files(prefix)
    check_work(files)
    rows = {row["stage"]: row for row in json.loads(files["manifest.json"])["funnel"]}
    counts = {name: (row["in"]["documents"], row["kept"]["documents"]) for name, row in rows.items()}
    assert counts == {"read": (15, 13), "extract": (13, 13), "exact-duplicates": (13, 10), "encode": (10, 10)}
    return files
