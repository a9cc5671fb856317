"""Requests to storage that the launcher makes itself, one after the other or at once, for very many files.

    python -m benchmarks.scale_requests [--files 3000]

Against the tests' fake of Cloud Storage: planning a run of that many Parquet files that are large enough to be read in
parts, their checksums included, and --discard-work for so many parts of each folder. Seconds are of the fake on this
machine, and say little; requests are what a bucket would see.
"""

import argparse
import io
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.fingerprint import describe_inputs
from refinery.pipelines.run.phases import remove_work
from refinery.transforms.read.plan import SourceParams, plan_sources
from tests.fake_gcs import FakeGcs, fake_gcs

FOLDERS = ("documents", "signatures", "verdicts", "dead_letters", "rejects")


def count(server: FakeGcs, what: str, call: Callable[[], Any]) -> Any:
    """Say what a call asks for; returns what it does."""
    server.calls.clear()
    began = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - began
    kinds = Counter(each.kind for each in server.calls if each.headers.get("host"))
    listed = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    print(f"| {what} | {sum(kinds.values()):,} | {listed} | {seconds:.1f} |", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, help="of input, and of each folder of work/")
    files: int = parser.parse_args().files
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [str(n) * 100 for n in range(200)]}), out, row_group_size=10, compression=None)
    with pytest.MonkeyPatch.context() as patch, fake_gcs("raw", "work") as server:
        server.use(patch)
        for i in range(files):
            server.put("raw", f"set/{i % 30:02d}/text/{i:06d}.parquet", out.getvalue())
            for other in ("images", "links"):
                server.put("raw", f"set/{i % 30:02d}/{other}/{i:06d}.bin", b"x")
            for folder in FOLDERS:
                server.put("work", f"run/{folder}/part-{i:032x}.parquet", b"x")
        for name in ("clean.json", "dedup.json", "shards.json", "_run.json"):
            server.put("work", f"run/{name}", b"x")
        source = SourceParams(name="set", paths=("gs://raw/set/*/text/*.parquet",))
        print(f"{files:,} files\n\n| what | requests | of these | seconds |\n| --- | --- | --- | --- |")
        split = len(out.getvalue()) // 4
        count(server, "planning", lambda: describe_inputs(plan_sources([source], split_bytes=split)))
        store = open_store("gs://work/run")
        count(server, f"--discard-work, {len(FOLDERS) * files:,} parts", lambda: remove_work(store))
        left = server.read("work")
        print(f"\n{len(left)} files are left")


if __name__ == "__main__":
    main()
