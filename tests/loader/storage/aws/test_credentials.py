"""Where keys come from: each place as AWS's own tools have it, on this machine."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.storage.aws.credentials import Provider, find_credentials, provider
from refinery.loader.storage.aws.keys import Credentials, CredentialsError
from refinery.loader.storage.aws.settings import read_settings
from tests.loader.range_server import running

KEYS = {"AccessKeyId": "AKIDROLE", "SecretAccessKey": "role-secret", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}
STS = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKIDSTS</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""


class Answers(ThreadingHTTPServer):
    """answers: (method, path) -> (status, body). seen: of each request (method, path, headers, body)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[tuple[str, str], tuple[int, str]] = {}
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Answers

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, text = self.server.answers.get((self.command, self.path), (404, ""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_PUT = do_POST = do_GET


@pytest.fixture
def server() -> Iterator[Answers]:
    with running(Answers()) as server:
        yield server


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_nothing() -> None:
    assert find_credentials() is None


def test_the_environment_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\naws_access_key_id=A\naws_secret_access_key=B\n")
    assert find_credentials() == Credentials("A", "B", source="the profile 'default'")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "C")
    with pytest.raises(CredentialsError, match="AWS_SECRET_ACCESS_KEY is not set"):
        find_credentials()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "D")
    assert find_credentials() == Credentials("C", "D", source="AWS_ACCESS_KEY_ID")
    assert "'D'" not in repr(find_credentials())


def test_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile  two ] # a comment\n# another\nregion=eu-west-2\n"
        "s3 =\n  region = indented\nendpoint_url = https://two.example\n"
        f"credential_process = {sys.executable} -c \"print(open('{tmp_path}/key').read())\"\n[profile three]\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert read_settings().region == "eu-west-1" and find_credentials() is None
    monkeypatch.setenv("AWS_PROFILE", "two")
    assert (read_settings().region, read_settings().endpoint) == ("eu-west-2", "https://two.example")
    (tmp_path / "key").write_text(json.dumps({"AccessKeyId": "A", "SecretAccessKey": "hidden", "SessionToken": "t"}))
    found = find_credentials()
    assert found is not None and (found.access_key, found.token, found.expires) == ("A", "t", 0.0)
    for broken in ("{}", "hidden", '{"AccessKeyId": 1, "SecretAccessKey": "hidden"}'):
        (tmp_path / "key").write_text(broken)
        with pytest.raises(CredentialsError, match="credential_process") as caught:
            find_credentials()
        assert "hidden" not in str(caught.value)
    (tmp_path / "key").unlink()
    with pytest.raises(CredentialsError, match="failed with exit status 1"):
        find_credentials()
    monkeypatch.setenv("AWS_PROFILE", "three")
    with pytest.raises(CredentialsError, match="aws configure export-credentials"):
        find_credentials()


def test_a_containers_role(server: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/role?x=1")
    (tmp_path / "token").write_text("of-the-pod\n")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    server.answers["GET", "/role?x=1"] = (200, json.dumps(KEYS))
    found = find_credentials()
    assert found is not None and found.access_key == "AKIDROLE"
    assert datetime.fromtimestamp(found.expires, UTC).year == 2999
    assert server.seen[0][2]["authorization"] == "of-the-pod"
    for status, body, said in ((403, "", "status 403"), (200, "<html/>", "not JSON"), (500, "", "no answer from")):
        server.answers["GET", "/role?x=1"] = (status, body)
        with pytest.raises(CredentialsError, match=f"this container's role: .*{said}"):
            find_credentials()
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.org/role")
    with pytest.raises(CredentialsError, match="https:// is allowed"):
        find_credentials()


def test_an_instances_role(server: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.url)
    folder = "/latest/meta-data/iam/security-credentials/"
    server.answers |= {("PUT", "/latest/api/token"): (200, "session"), ("GET", folder): (200, "worker\n")}
    server.answers["GET", f"{folder}worker"] = (200, json.dumps(KEYS))
    assert find_credentials() is None, "it is disabled"
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    found = find_credentials()
    assert found is not None and found.access_key == "AKIDROLE"
    assert server.seen[-1][2]["x-aws-ec2-metadata-token"] == "session"
    server.answers["GET", folder] = (404, "")
    assert find_credentials() is None, "an instance without a role"
    server.answers.clear()
    assert find_credentials() is None, "another cloud's service at that address"


def test_a_web_identity(server: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("signed-by-kubernetes")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
    server.answers["POST", "/"] = (200, STS)
    found = find_credentials()
    assert found is not None and (found.access_key, found.token) == ("AKIDSTS", "t")
    assert b"WebIdentityToken=signed-by-kubernetes" in server.seen[0][3]
    for status, body, said in ((403, "", "may it be assumed"), (200, "<html/>", "holds no key")):
        server.answers["POST", "/"] = (status, body)
        with pytest.raises(CredentialsError, match=f"role/r: .*{said}"):
            find_credentials()
    (tmp_path / "token").unlink()
    with pytest.raises(CredentialsError, match="AWS_WEB_IDENTITY_TOKEN_FILE cannot be read"):
        find_credentials()


def test_keys_are_renewed_before_they_expire() -> None:
    made = [Credentials(str(number), "s", expires=time.time() + 299 * (1 + number)) for number in range(3)]
    given = iter(made)
    source = Provider(lambda: next(given))
    assert [source.get() for _ in range(3)] == [made[0], made[1], made[1]]
    assert source.renew(made[0]) == made[1], "another thread has renewed it"
    assert source.renew(made[1]) == made[2]
    fixed = Provider(lambda: made[0])
    assert fixed.renew(made[0]) is None


def test_one_provider_for_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    first = provider()
    assert provider() is first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    assert provider() is not first
