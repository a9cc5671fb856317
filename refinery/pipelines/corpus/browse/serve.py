"""The server of `refinery browse`: one socket on this machine's own address, one session, until it is interrupted."""

import socket
from collections.abc import Callable, Sequence

import uvicorn

from refinery.pipelines.corpus.browse.app import Browser, make_app
from refinery.pipelines.corpus.browse.guard.session import Session
from refinery.pipelines.corpus.browse.reading.judgements import Judgements
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt

ADDRESS = "127.0.0.1"  # and no other
REQUESTS = 64  # at once; more are refused
BACKLOG = 128


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address. port: 0 for a free one. Raises ValueError for one that is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ValueError(f"--port {port}: {error.strerror or error}; leave it out for a free one") from None
    return listener


def look_at(prefixes: Sequence[str], works: Sequence[str], recipes: Sequence[str]) -> list[LookedAt]:
    """The runs. Raises FormatError for a damaged manifest, ValueError where there is neither a corpus nor a run."""
    runs = []
    for label, prefix, work, recipe in zip("ab", prefixes, works, recipes, strict=False):
        run = LookedAt(label, prefix, work, recipe)
        if run.opened is None and run.inspection.state in ("empty", "foreign"):
            raise ValueError(f"{prefix}: no run is there; `refinery refine` makes one")
        runs.append(run)
    return runs


def serve(runs: Sequence[LookedAt], judgements: str, port: int, sample: int, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. say: is told the address, which works once."""
    kept = Judgements(judgements, [run.prefix for run in runs])
    with listen(port) as listener:
        session = Session(listener.getsockname()[1])
        app = make_app(Browser(runs, kept, session, sample))
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,  # addresses hold a token
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=REQUESTS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=16 << 10,
        )
        say(session.url)
        server = uvicorn.Server(config)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn has closed its connections by now
            return
