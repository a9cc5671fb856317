"""What publishing a corpus of very many shards takes of the launcher, and of the worker that writes the job's report.

    python -m benchmarks.scale_publish [--shards 100000] [--domains 8] [--mib 64]

Each in a process of its own: the worker merges the records of all shards into the report; the launcher reads it, writes
the phase's manifest, reads that, and makes and publishes the manifest of the corpus. Memory is the peak that was
resident, and what the process had after its imports.
"""

import argparse
import contextlib
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.scale_manifest import made_payload
from refinery.loader.format.manifest import unseal
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.funnel import CountsDisagree
from refinery.pipelines.run.phases import finish_phase, read_phase
from refinery.pipelines.run.publish import check_written
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.report import merge_records, write_report
from refinery.transforms.write.shard_reports import KIND, MergeShards, reported_shards

REPORT = "shards/report.json"


def memory() -> int:
    """The peak so far, in MB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) // 1024 if found else 0


def report(folder: str) -> None:
    """As the worker that is given all records."""
    with (Path(folder) / "records.jsonl").open("rb") as lines:
        write_report(
            merge_records((line.rstrip(b"\n") for line in lines), {KIND: MergeShards}),
            folder,
            REPORT,
            {"fingerprint": "f"},
        )


def publish(folder: str) -> None:
    """As the launcher, from the end of the job to the manifest."""
    store = open_store(folder)
    finish_phase(folder, "shards", "f", unseal(store.read(REPORT), REPORT))
    phase = read_phase(folder, "shards", "f")
    assert phase is not None  # noqa: S101 - it was written above
    shards = reported_shards(phase.report)
    with contextlib.suppress(CountsDisagree):  # no file of them is there
        check_written(store, shards["path"].to_pylist())
    head = orjson.loads((Path(folder) / "head.json").read_bytes())
    make_manifest({**head, "shards": shards}).publish(open_store(f"{folder}/corpus"))


STEPS = {"report": report, "publish": publish}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--domains", type=int, default=8)
    parser.add_argument("--mib", type=int, default=64, help="MiB of tokens in a shard")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "FOLDER"), help="only this one, in this process")
    args = parser.parse_args()
    if args.step:
        before = memory()
        STEPS[args.step[0]](args.step[1])
        print(f"{memory()} MB, {before} MB before")
        return
    with TemporaryDirectory() as folder:
        payload = made_payload(args.shards, args.domains, args.mib)
        with (Path(folder) / "records.jsonl").open("wb") as out:
            for shard in payload.pop("shards"):
                out.write(side_output_record("shard", **shard) + b"\n")
        (Path(folder) / "head.json").write_bytes(orjson.dumps(payload))
        del payload
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.scale_publish", "--step", step, folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{step}: {done.stdout.strip()}", flush=True)
        print(f"report: {(Path(folder) / REPORT).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
