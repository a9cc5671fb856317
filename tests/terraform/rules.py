"""What the google provider refuses of a value before it asks Google, as far as terraform/ can get it wrong.

The schema says which attributes there are. Which values an attribute takes is in the provider's code. Lists of values
are also in the descriptions, and thereby in google_schema.json. The patterns here were written for the attributes that
terraform/ composes from variables.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgpack import ExtType

# A value that is only known after the plan, as Terraform encodes it.
UNKNOWN = ExtType(0, b"\0")

# What is made up of a type; of a string, its place.
EMPTY: dict[str, Any] = {"number": 1, "bool": False, "list": [], "set": [], "map": {}}


class Fault(NamedTuple):
    """path: names of blocks and attributes, and positions in lists. message: what is allowed."""

    path: tuple[str | int, ...]
    message: str


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda value: re.search(pattern, value) is not None


def is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return False
    return True


def is_bucket(value: str) -> bool:
    shaped = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", value) is not None
    return shaped and not value.startswith("goog") and "google" not in value


NAME = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
EMAIL = r"[a-z][-a-z0-9]{4,28}[a-z0-9]@[a-z0-9.-]+\.iam\.gserviceaccount\.com"

# Kind of resource, attribute, what holds, what is said otherwise. The first that fits a value judges it.
RULES: tuple[tuple[str, str, Callable[[str], bool], str], ...] = (
    (
        "google_service_account",
        "account_id",
        matches(r"^[a-z][-a-z0-9]{4,28}[a-z0-9]$"),
        "6 to 30 letters, digits, hyphens",
    ),
    (
        "google_service_account_iam_member",
        "service_account_id",
        matches(rf"^projects/[^/]+/serviceAccounts/{EMAIL}$"),
        "projects/PROJECT/serviceAccounts/NAME@PROJECT.iam.gserviceaccount.com",
    ),
    ("google_storage_hmac_key", "service_account_email", matches(rf"^{EMAIL}$"), "the address of a service account"),
    (
        "*_iam_member",
        "role",
        matches(r"^(roles/[A-Za-z0-9.]+|(projects|organizations)/[^/]+/roles/[A-Za-z0-9_.]+)$"),
        "roles/NAME",
    ),
    ("*_iam_member", "member", matches(r"^(?!deleted:)(.+:.+|allUsers|allAuthenticatedUsers)$"), "KIND:NAME"),
    ("google_storage_bucket", "name", is_bucket, "a bucket's name, without google in it"),
    (
        "google_iam_workload_identity_pool*",
        "workload_identity_pool*_id",
        matches(r"^(?!gcp-)[a-z0-9-]{4,32}$"),
        "4 to 32 letters, digits, hyphens, not beginning with gcp-",
    ),
    ("google_compute_*", "name", matches(NAME), "1 to 63 letters, digits, hyphens, beginning with a letter"),
    ("google_compute_subnetwork", "ip_cidr_range", is_network, "a range without host bits, such as 10.20.0.0/20"),
    ("google_kms_crypto_key", "rotation_period", matches(r"^([89]\d{4}|\d{6,})s$"), "whole seconds, a day at least"),
    ("google_kms_crypto_key", "destroy_scheduled_duration", matches(r"^\d+s$"), "whole seconds"),
    ("google_cloud_run_v2_job", "timeout", matches(r"^\d+(\.\d{1,9})?s$"), "seconds"),
    ("google_project_service", "service", matches(r"^[a-z0-9.-]+\.googleapis\.com$"), "NAME.googleapis.com"),
    ("google_dns_*", "dns_name", matches(r"\.$"), "a name with a dot at its end"),
    ("google_dns_record_set", "name", matches(r"\.$"), "a name with a dot at its end"),
)


def faults(
    kind: str, block: dict[str, Any], value: dict[str, Any], path: tuple[str | int, ...] = ()
) -> Iterator[Fault]:
    """What is wrong with the values of a block: of its attributes, then of its nested blocks."""
    for name, facts in block.get("attributes", {}).items():
        given = value.get(name)
        if given is not None and not (facts.get("optional") or facts.get("required")):
            yield Fault((*path, name), "is set by the service, and cannot be set here")
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, (str, int, float)) and not isinstance(one, bool):
                yield from _judge(kind, name, facts, one, (*path, name))
    for name, nested in block.get("block_types", {}).items():
        inner = value.get(name)
        if isinstance(inner, dict):
            yield from faults(kind, nested["block"], inner, (*path, name))
        for position, one in enumerate(inner if isinstance(inner, list) else []):
            if isinstance(one, dict):
                step = (position,) if nested["nesting_mode"] == "list" else ()
                yield from faults(kind, nested["block"], one, (*path, name, *step))


def _judge(
    kind: str, name: str, facts: dict[str, Any], value: str | float, path: tuple[str | int, ...]
) -> Iterator[Fault]:
    if facts.get("values") and value not in ("", *facts["values"]):
        yield Fault(path, f"{value!r} is none of {', '.join(facts['values'])}")
    for kinds, names, holds, allowed in RULES:
        if fnmatchcase(kind, kinds) and fnmatchcase(name, names) and isinstance(value, str):
            if not holds(value):
                yield Fault(path, f"{value!r} is not allowed; allowed is {allowed}")
            return


def planned(block: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """The state that is planned: what the provider computes and nobody set becomes unknown."""
    done = dict(value)
    for name, facts in block.get("attributes", {}).items():
        if facts.get("computed") and done.get(name) is None:
            done[name] = UNKNOWN
    for name, nested in block.get("block_types", {}).items():
        if isinstance(inner := done.get(name), dict):
            done[name] = planned(nested["block"], inner)
        elif isinstance(inner, list):
            done[name] = [planned(nested["block"], one) if isinstance(one, dict) else one for one in inner]
    return done


def filled(kind: str, block: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """The state after an apply: what was unknown is made up, with an address where addresses are checked."""
    done = dict(value)
    account = f"{value.get('account_id') or kind.removeprefix('google_').replace('_', '-')}@p.iam.gserviceaccount.com"
    made_up = {"email": account, "email_address": account, "name": f"projects/p/serviceAccounts/{account}"}
    for name, facts in block.get("attributes", {}).items():
        if isinstance(done.get(name), ExtType):
            is_account = kind == "google_service_account" or name == "email_address"
            member = f"serviceAccount:{account}" if name == "member" else f"{kind}/{value.get('name')}/{name}"
            text = made_up.get(name, member) if is_account else member
            done[name] = EMPTY.get(facts["type"] if isinstance(facts["type"], str) else facts["type"][0], text)
    for name, nested in block.get("block_types", {}).items():
        if isinstance(inner := done.get(name), dict):
            done[name] = filled(kind, nested["block"], inner)
        elif isinstance(inner, list):
            done[name] = [filled(kind, nested["block"], one) if isinstance(one, dict) else one for one in inner]
    return done
