"""Cold reading over a network: tokens per second and the first batch, against a server that answers late.

    python -m benchmarks.remote_cold [--latency 0.05] [--tokens 200000000] [--vocabulary 100000] [--repeat 3]
        [--threads N] [--masks] [--gcs]

The corpus is random tokens in documents of about 500, one shard, int32 or, with a vocabulary of up to 65,500, uint16.
It is behind an HTTP server in a process of its own, which sends the first byte of every response `latency` seconds
after its request, and that of a connection's first response a round trip later (the connection's own handshake).
Batches are 8 rows of 4,096 tokens, shuffled as a remote corpus is by default, no work between two batches; the cache
is a new folder every time. "First" is from opening the stream to its first batch, "whole" the tokens of the epoch by
the wall time from opening to its end. With --gcs the server answers as Cloud Storage's JSON API does, and the corpus
is read as gs://.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import unquote

from benchmarks.loader_corpus import BATCH, SEED, SEQUENCE, VOCABULARY, make_corpus
from benchmarks.signatures import describe_run
from refinery.loader import RemoteParams, TokenStream

_ASKED = re.compile(rb"GET /(\S*) HTTP/1\.1\r\n.*?[Rr]ange: bytes=(\d+)-(\d+)", re.DOTALL)
_OBJECT = re.compile(r"download/storage/v1/b/bucket/o/([^?]*)\?")


def serve(root: Path, latency: float, pipe: Connection) -> None:
    """Ranges of the files in `root`, each after `latency` seconds. Sends the port through `pipe`, then serves on."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(latency)
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                arrived = time.perf_counter()
                asked = _ASKED.match(head)
                name = asked[1].decode() if asked else "none"
                path = root / (unquote(found[1]) if (found := _OBJECT.match(name)) else name)
                if asked is None or not path.is_file():
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                size, start = path.stat().st_size, int(asked[2])
                stop = min(int(asked[3]) + 1, size)
                await asyncio.sleep(arrived + latency - time.perf_counter())
                answer = f"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{stop - 1}/{size}\r\n"
                answer += "X-Goog-Generation: 1\r\n" if found else ""
                writer.write(f"{answer}Content-Length: {stop - start}\r\n\r\n".encode())
                with path.open("rb") as file:
                    await asyncio.get_running_loop().sendfile(writer.transport, file, start, stop - start)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(client, "127.0.0.1", 0, backlog=256)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--tokens", type=int, default=200_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, help="RemoteParams.threads; the default if it is not given")
    parser.add_argument("--masks", action="store_true", help="with doc_ids, which read the index")
    parser.add_argument("--gcs", action="store_true", help="as gs://")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY, help="ids of the tokens")
    parser.add_argument("--work", type=Path, help="folder that keeps the corpus")
    given = parser.parse_args()
    print(describe_run())
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        corpus = make_corpus(work / f"remote-{given.tokens}-{given.vocabulary}", given.tokens, given.vocabulary)
        here, there = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(
            target=serve, args=(corpus.folder, given.latency, there), daemon=True
        )
        server.start()
        url = f"http://127.0.0.1:{here.recv()}"
        if given.gcs:
            os.environ["STORAGE_EMULATOR_HOST"], url = url, "gs://bucket"
        size = corpus.bin.stat().st_size
        print(f"{corpus.tokens:,} tokens of {corpus.dtype}, {size:,} bytes; {given.latency * 1000:.0f} ms of latency")
        rates, firsts = [], []
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as cache:
                params = {} if given.threads is None else {"threads": given.threads}
                remote = RemoteParams(cache=Path(cache), **params)
                used, started = time.process_time(), time.perf_counter()
                with TokenStream(
                    url, SEQUENCE, BATCH, SEED, epochs=1, remote=remote, doc_ids=given.masks
                ) as stream:  # fmt: skip
                    next(stream)
                    firsts.append(time.perf_counter() - started)
                    for _ in stream:
                        pass
                    seconds, cpu = time.perf_counter() - started, time.process_time() - used
                    found = stream.telemetry.snapshot()["counters"]
                rates.append(corpus.tokens / seconds / 1e6)
                reads = {name: found.get(name, 0) for name in ("requests", "bytes", "cache_misses", "waits", "hedges")}
                print(f"first {firsts[-1]:.3f} s, whole {rates[-1]:.1f} M tokens/s, CPU {cpu / seconds:.2f}; {reads}")
        print(f"median: first {statistics.median(firsts):.3f} s, whole {statistics.median(rates):.1f} M tokens/s")
        server.terminate()


if __name__ == "__main__":
    main()
