"""Where S3 is and how it is asked: the AWS_* variables of the environment, and the files of the AWS command line.

No other package reads them; refinery.loader.storage.aws.credentials finds the keys.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from refinery.loader.arguments import is_loopback

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
DEFAULT_REGION = "us-east-1"
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,62}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class Settings:
    """endpoint: scheme, host and port of the service, "" for AWS's own. region: "" where nothing names one.

    virtual_hosted: whether the bucket is part of the host's name, always so at AWS itself. unsigned: send no signature,
    whatever credentials there are. requester_pays: agree to pay for requests to somebody else's bucket.
    """

    endpoint: str = ""
    region: str = ""
    virtual_hosted: bool = False
    unsigned: bool = False
    requester_pays: bool = False


def read_settings() -> Settings:
    """The settings of this process's environment now.

    Raises ValueError for an endpoint that is not https:// (or http:// on this machine) without a path.
    """
    profile = read_profile()
    named = [(name, os.environ[name]) for name in ENDPOINTS if os.environ.get(name)]
    variable, endpoint = (named or [("endpoint_url", profile.get("endpoint_url", ""))])[0]
    region = next((value for name in REGIONS if (value := os.environ.get(name))), profile.get("region", ""))
    if region and not is_region(region):
        raise ValueError(f"AWS_REGION: {region!r:.80} given, a name such as {DEFAULT_REGION} is allowed")
    return Settings(
        endpoint and check_endpoint(variable, endpoint),
        region,
        _is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
        _is_set("AWS_SKIP_SIGNATURE"),
        _is_set("AWS_REQUEST_PAYER", "requester"),
    )


def check_endpoint(variable: str, endpoint: str) -> str:
    """scheme://host[:port] of an endpoint. Raises ValueError, without what may be a password."""
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    plain = parts.scheme == "http" and not is_loopback(host)
    rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or plain or not re.fullmatch(r"[\w.:-]+", host, re.ASCII) or rest:
        raise ValueError(
            f"{variable}: {parts.scheme or '...'}://{host or '...'} given, https://HOST[:PORT] is allowed, http:// for "
            f"this machine only"
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def is_region(text: str) -> bool:
    """Whether a text can be a region's name, and so a part of a host's."""
    return bool(_REGION.fullmatch(text))


def aws_host(service: str, region: str) -> str:
    """The host of one of AWS's services."""
    return f"{service}.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")


def read_profile(name: str = "") -> Mapping[str, str]:
    """What the AWS command line's two files say of a profile, by default the one of AWS_PROFILE; {} for nothing."""
    name = name or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", "default" if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        path = Path(os.environ.get(variable) or os.path.expanduser(f"~/.aws/{file}")).expanduser()
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found |= _section(text, section)
    return found


def _section(text: str, section: str) -> dict[str, str]:
    """A section of an ini file as the AWS command line reads it: indented lines belong to the key above them."""
    found: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        if match := re.fullmatch(r"\[\s*(.*?)\s*\]\s*([#;].*)?", line.rstrip()):
            inside = " ".join(match[1].replace('"', "").split()) == section
        elif inside and line[:1].strip() and line[0] not in "#;" and "=" in line:
            key, _, value = line.partition("=")
            found[key.strip().lower()] = value.strip()
    return found


def _is_set(variable: str, *others: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", *others)
