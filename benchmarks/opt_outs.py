"""Tables of opt-outs at size: building one of many hosts, and looking addresses up in it.

    python -m benchmarks.opt_outs [--hosts 10000000] [--addresses 300000] [--folder /tmp]

The hosts are made: 55 % have one of 50 files that site builders give everybody, 25 % a file of their own, 5 % one that
cannot be fetched, 15 % none. What reading a row costs (its fields, its file) is measured for a sample of them; the
table is built of rows that are read already. Building and looking up run in processes of their own, and seconds are CPU
seconds; memory is what the system says of the process when it is done: its own pages, and those of the table, which the
system holds once for all processes.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.signatures import describe_run
from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.document import Document
from refinery.transforms.rights.build_table import build_table
from refinery.transforms.rights.opt_out import OptOutParams, OptOuts, judge_opt_out
from refinery.transforms.rights.robots import short_form
from refinery.transforms.rights.rule_rows import NOTHING, ROBOTS, UNREACHABLE, BadRow, RuleRow, make_row

SAMPLE = 50_000
OWN = "some-folder\n"
AGENTS = ("GPTBot", "CCBot", "ClaudeBot", "Googlebot", "*")


def host(number: int) -> str:
    return f"www.site-{number}.example"


def ready_rows(hosts: int) -> Iterator[RuleRow | BadRow]:
    """A row for each host, as reading leaves it."""
    rng = random.Random(3)
    common = [short_form(made_file(random.Random(number))) for number in range(50)]
    for number in range(hosts):
        share = rng.random()
        says: str | int = common[number % 50]
        if share > 0.8:
            says = NOTHING if share < 0.95 else UNREACHABLE
        elif share > 0.55:
            says = f"agents: gptbot\n{''.join(f'disallow: /{number + more:x}/{OWN}' for more in range(8))}"
        yield RuleRow(host(number), ROBOTS, 20_000 + number % 300, 1 << 19, says)


def made_rows(hosts: int) -> Iterator[RuleRow | BadRow]:
    """A row for each host, read from its fields."""
    rng = random.Random(3)
    common = [made_file(random.Random(number)) for number in range(50)]
    for number in range(hosts):
        share = rng.random()
        status, body = 200, common[number % 50] if share <= 0.55 else None
        if share > 0.8:
            status = 404 if share < 0.95 else 503
        elif share > 0.55:
            body = made_file(rng)
        yield make_row(f"https://{host(number)}/robots.txt", "", "2026-10-05T01:02:03Z", status, body)


def made_file(rng: random.Random) -> bytes:
    """Some groups of some rules: a few hundred bytes."""
    lines = ["# made for a benchmark"]
    for agent in rng.sample(AGENTS, rng.randrange(1, 4)):
        lines.append(f"User-agent: {agent}")
        lines += [f"Disallow: /{rng.randrange(1_000_000):x}/" for _ in range(rng.randrange(1, 8))]
    return "\n".join(lines).encode()


def run_build(hosts: int, table: Path) -> dict[str, float]:
    sample = sum(1 for _ in made_rows(SAMPLE))
    read = time.process_time() / sample
    start = time.process_time()
    built = build_table(ready_rows(hosts), table)
    return {
        "read": read,
        "seconds": time.process_time() - start,
        "peak": getrusage(RUSAGE_SELF).ru_maxrss * 1024,
        "size": table.stat().st_size,
        "texts": built.texts,
    }


def run_lookups(hosts: int, addresses: int, table: Path) -> dict[str, float]:
    """Addresses on hosts by chance, a third of them unknown: no host comes twice, so nothing is remembered."""
    before = private_bytes()
    params = OptOutParams(tables=(str(table),))
    known = OptOuts(params)
    rng = random.Random(5)
    urls = [f"https://{host(n)}/{n:x}/page.html?a=b" for n in rng.sample(range(hosts * 3 // 2), addresses)]
    docs = [Document(b"x" * 16, "", url, "", "", 0) for url in urls]
    start = time.process_time()
    answers = [judge_opt_out(doc, known, params) for doc in docs]
    seconds = time.process_time() - start
    dropped = sum(bool(answer_of(each).reason) for each in answers)
    del answers, docs, urls
    return {
        "per_second": addresses / seconds,
        "dropped": dropped,
        "private": private_bytes() - before,
        "mapped": mapped_bytes(table),
    }


def private_bytes() -> int:
    """Pages of this process alone."""
    return (
        sum(int(size) for size in re.findall(r"^Private_Dirty: +(\d+) kB", smaps("smaps_rollup"), re.MULTILINE)) << 10
    )


def mapped_bytes(table: Path) -> int:
    """Pages of the table that this process has touched."""
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps("smaps"), flags=re.MULTILINE)
    sizes = (re.search(r"^Rss: +(\d+) kB", part, re.MULTILINE) for part in parts if str(table) in part)
    return sum(int(size[1]) for size in sizes if size) << 10


def smaps(name: str) -> str:
    return Path(f"/proc/self/{name}").read_text()


def in_process(step: str, args: argparse.Namespace, table: Path) -> dict[str, Any]:
    """A step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.opt_outs", "--step", step, "--table", str(table)]
    command += ["--hosts", str(args.hosts), "--addresses", str(args.addresses)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000_000)
    parser.add_argument("--addresses", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        build = args.step == "build"
        found = run_build(args.hosts, args.table) if build else run_lookups(args.hosts, args.addresses, args.table)
        print(json.dumps(found))
        return
    print(describe_run())
    with TemporaryDirectory(dir=args.folder) as folder:
        table = Path(folder) / "table"
        built, looked = in_process("build", args, table), in_process("lookups", args, table)
    print(
        f"{args.hosts:,} hosts: built in {built['seconds']:,.0f} s ({args.hosts / built['seconds']:,.0f} rows a second)"
        f" of rows read at {1e6 * built['read']:,.0f} microseconds each"
        f", {built['peak'] / 1e6:,.0f} MB at most, {built['size'] / 1e6:,.0f} MB on disk, {built['texts']:,.0f} files"
    )
    print(
        f"{args.addresses:,} addresses: {looked['per_second']:,.0f} a second, {looked['dropped']:,.0f} dropped; "
        f"{looked['private'] / 1e6:,.0f} MB of the process' own, {looked['mapped'] / 1e6:,.0f} MB of mapped pages"
    )


if __name__ == "__main__":
    main()
