"""Keys of roles: those of a web identity, of a container, of an instance; each an HTTP request to where AWS gives them.

The protocols: docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html.
"""

import http.client
import json
import os
import ssl
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from refinery.loader.arguments import is_loopback
from refinery.loader.storage.aws.answers import BadAnswer, parse
from refinery.loader.storage.aws.keys import Credentials, CredentialsError, of_answer
from refinery.loader.storage.aws.settings import DEFAULT_REGION, aws_host, check_endpoint, read_settings

CONTAINER = "http://169.254.170.2"
CONTAINERS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")  # where http:// is allowed to, beside this machine
INSTANCE = "http://169.254.169.254"
SECONDS = 10.0  # of a request
INSTANCE_SECONDS = 1.0  # a machine that is not an instance gives no answer at all
TRIES = 3
MOST_BYTES = 1 << 20


def from_web_identity() -> Credentials | None:
    """Of an identity that Kubernetes, or another federated place, gives as a file. Raises CredentialsError."""
    file, role = os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE", ""), os.environ.get("AWS_ROLE_ARN", "")
    if not file or not role:
        return None
    source = f"the web identity of {role}"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_STS", "")
    place = check_endpoint("AWS_ENDPOINT_URL_STS", endpoint) if endpoint else f"https://{_sts_host()}"
    try:
        token = Path(file).read_text().strip()
    except (OSError, ValueError) as error:
        raise CredentialsError(f"{source}: AWS_WEB_IDENTITY_TOKEN_FILE cannot be read ({error})") from None
    form = urlencode({
        "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": role, "WebIdentityToken": token,
        "RoleSessionName": os.environ.get("AWS_ROLE_SESSION_NAME") or f"refinery-{os.getpid()}",
    })  # fmt: skip
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body = ask(source, "POST", f"{place}/", headers, form.encode())
    if status != 200:
        raise CredentialsError(f"{source}: status {status}: may it be assumed with this identity?")
    try:
        result = next(parse(body, "AssumeRoleWithWebIdentityResponse").all("AssumeRoleWithWebIdentityResult"))
        keys = next(result.all("Credentials"))
    except (BadAnswer, StopIteration):
        raise CredentialsError(f"{source}: the answer holds no key") from None
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    return of_answer({name: keys.text(name) for name in names}, source, ("SecretAccessKey", "SessionToken"))


def _sts_host() -> str:
    return aws_host("sts", read_settings().region or DEFAULT_REGION)


def from_container() -> Credentials | None:
    """Of a task in ECS or a pod in EKS. Raises CredentialsError."""
    relative = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
    url = f"{CONTAINER}{relative}" if relative else os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
    if not url:
        return None
    source = "this container's role"
    parts = urlsplit(url)
    if parts.scheme != "https" and not (is_loopback(parts.hostname or "") or parts.hostname in CONTAINERS):
        raise CredentialsError(
            f"{source}: AWS_CONTAINER_CREDENTIALS_FULL_URI: https:// is allowed, http:// nearby only"
        )
    token = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", ""):
        try:
            token = Path(file).read_text().strip()
        except (OSError, ValueError) as error:
            raise CredentialsError(f"{source}: its token's file cannot be read ({error})") from None
    status, body = ask(source, "GET", url, {"Authorization": token} if token else {})
    return _of_json(source, status, body)


def from_instance() -> Credentials | None:
    """Of the instance that this machine is, None where it is none or has no role. Raises CredentialsError.

    Costs a second on a machine that is none; AWS_EC2_METADATA_DISABLED=true saves it.
    """
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    named = os.environ.get("AWS_METADATA_ENDPOINT", "") or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "")
    place, source = (named or INSTANCE).rstrip("/"), "this instance's role"
    folder = f"{place}/latest/meta-data/iam/security-credentials/"
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
    try:
        status, token = ask(source, "PUT", f"{place}/latest/api/token", lifetime, seconds=INSTANCE_SECONDS, tries=1)
    except CredentialsError:
        return None
    if status != 200:
        return None
    headers = {"X-aws-ec2-metadata-token": token.decode("latin-1").strip()}
    status, names = ask(source, "GET", folder, headers)
    if status == 404 or not names.strip():
        return None
    role = names.decode("utf-8", "replace").split()[0]
    status, body = ask(source, "GET", folder + role, headers)
    return _of_json(source, status, body)


def _of_json(source: str, status: int, body: bytes) -> Credentials:
    if status != 200:
        raise CredentialsError(f"{source}: status {status}")
    try:
        return of_answer(json.loads(body), source)
    except ValueError:
        raise CredentialsError(f"{source}: the answer is not JSON") from None


def ask(
    source: str, method: str, url: str, headers: dict[str, str], body: bytes = b"", seconds: float = SECONDS,
    tries: int = TRIES,
) -> tuple[int, bytes]:  # fmt: skip
    """Status and body of the answer. Raises CredentialsError where there is none, after as many tries."""
    parts = urlsplit(url)
    said = ""
    for _ in range(tries):
        secure = parts.scheme == "https"
        connection = (
            http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=seconds, context=ssl.create_default_context()
            )
            if secure
            else http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
        )
        try:
            connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body, headers)
            response = connection.getresponse()
            answer = response.read(MOST_BYTES)
            if response.status < 500 and response.status != 429:
                return response.status, answer
            said = f"status {response.status}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            said = f"{type(error).__name__}"
        finally:
            connection.close()
    raise CredentialsError(f"{source}: no answer from {parts.scheme}://{parts.hostname} ({said})", passing=True)
