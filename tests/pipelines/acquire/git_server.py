"""A server of git repositories on this machine: git's own http-backend behind Python's server."""

import os
import subprocess
import threading
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.loader.range_server import running
from tests.pipelines.acquire.repositories import GIT


class _Handler(BaseHTTPRequestHandler):
    server: "GitServer"

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.requests.append(self.path)
        if path in self.server.answers:
            status, headers = self.server.answers[path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            return
        variables = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH": os.environ["PATH"],
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert GIT
        done = subprocess.run([GIT, "http-backend"], input=body, env=variables, capture_output=True)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET


class GitServer(ThreadingHTTPServer):
    """folder: its repositories are served. answers: path -> status and headers, instead. requests: paths asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.answers: dict[str, tuple[int, dict[str, str]]] = {}
        self.requests: list[str] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Disconnecting clients are expected."""


def git_server(folder: Path) -> AbstractContextManager[GitServer]:
    return running(GitServer(folder))
