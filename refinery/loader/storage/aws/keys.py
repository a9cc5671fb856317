"""A key for AWS, and how its services give one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


class CredentialsError(OSError):
    """Credentials are configured but cannot be obtained. The message is one line and names no secret. passing:
    another try may succeed."""

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True)
class Credentials:
    """A key. expires: seconds since 1970, 0 for never. source: where it is from, for messages."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    expires: float = 0.0
    source: str = ""


def of_answer(answer: Any, source: str, names: tuple[str, str] = ("SecretAccessKey", "Token")) -> Credentials:
    """Keys from JSON as AWS's services give it. Raises CredentialsError for anything else."""
    facts: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
    values = [facts.get(name) for name in ("AccessKeyId", *names)]
    if not all(isinstance(value, str) and value for value in values[:2]):
        raise CredentialsError(f"{source}: the answer holds no key")
    expires = 0.0
    if ends := facts.get("Expiration"):
        try:
            expires = datetime.fromisoformat(str(ends)).timestamp()
        except ValueError:
            raise CredentialsError(f"{source}: the time at which the key expires cannot be read") from None
    return Credentials(str(values[0]), str(values[1]), str(values[2] or ""), expires, source)
