"""Checks of Beam flags: what cannot work on Dataflow, or must not be stored with a job, is refused before anything
runs.
"""

import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

import refinery
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.params import Params
from refinery.transforms.read.remote.files import is_remote

HERE = Path(refinery.__file__).parent
BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/.*)?")
REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")
PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
SUBNETWORK = re.compile(
    r"(https://www\.googleapis\.com/compute/(v1|beta)/projects/[^/]+/)?regions/(?P<region>[^/]+)/subnetworks/[^/]+"
)
KMS_KEY = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
ACCOUNT = re.compile(r"[^@\s]+@[^@\s]+\.gserviceaccount\.com")
IMAGE = re.compile(
    r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+(:(?P<tag>[\w][\w.-]{0,127}))?(@sha256:(?P<digest>[0-9a-f]{64}))?"
)

# Local paths: at the beginning of a value, and inside it after a separator.
LOCAL = re.compile(r"^~|(^|[=,;\"'\s]|:(?!//))(file:/|~?/|\.\.?/)")

# Flags that Beam accepts and a run cannot have, with what to do instead.
REFUSED: Mapping[str, str] = {
    "streaming": "a corpus is made by batch jobs; leave it out",
    "update": "only streaming jobs can be updated; leave it out",
    "save_main_session": "jobs need nothing from the launching process; leave it out",
    "requirements_file": "it stores a path of this machine with the job and downloads every wheel at every launch; "
    "use --sdk_container_image, or --setup_file=./setup.py",
    "files_to_stage": "it stores paths of this machine in the job's options; put files into a bucket or into the image",
    "extra_packages": "the worker package is made by --setup_file=./setup.py; others belong in the image",
    "worker_harness_container_image": "it is deprecated; use --sdk_container_image",
    "pickle_library": "any value except Beam's default stores paths of this machine; leave it out",
    "zone": "it is deprecated and turns the shuffle service off; use --region, or --worker_zone",
    "network": "a subnetwork is in one: --subnetwork=regions/REGION/subnetworks/NAME",
}

SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|(private|access|api|account)[_-]?key"
    r"|(session|auth|access|bearer|refresh)[_-]?token|connection[_-]?string",
    re.IGNORECASE,
)
# Keys inside a value that may name a secret: key=… and, in JSON, "key": …
KEY = re.compile(r"([\w.-]+)(?==[^\s])|([\w.-]+)(?=\\?[\"']\s*:)")
# Names that match and hold no secret.
NOT_SECRET = frozenset({"dataflow_kms_key", "gbek"})
SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\"private_key\"|\bAIza[\w-]{35}|\bya29\.[\w-]+|\b1//0[\w-]{20,}|\bGOCSPX-[\w-]{20,}"
    r"|\bA[KS]IA[0-9A-Z]{16}\b|\bgh[pousr]_\w{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20}|\bhf_\w{30,}"
    r"|\bxox[abprs]-[\w-]{10,}|\beyJ[\w-]{10,}\.eyJ[\w-]+"
    r"|\bBearer [\w.~+/-]{10,}|://[^/\s:@]+:[^/\s@]+@"
)


def read_options(flags: Sequence[str]) -> dict[str, Any]:
    """The flags as Beam parses them, by option; only those that differ from Beam's defaults. Raises ValueError."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            options: dict[str, Any] = PipelineOptions(list(flags)).get_all_options(drop_default=True)
    except SystemExit:
        last = errors.getvalue().strip().splitlines()[-1:]
        raise ValueError(f"flags for Beam: {''.join(last).partition('error: ')[2] or 'cannot be read'}") from None
    return options


def check_bucket(flag: str, place: str) -> None:
    """Raises ValueError unless `place` is gs://bucket or below it."""
    if not BUCKET.fullmatch(place):
        remote = "have no credentials for it" if place.startswith("s3://") else "cannot see this machine's files"
        raise ValueError(f"{flag}: {place!r} given, gs://BUCKET/… is allowed: workers on Dataflow {remote}")


def flag_problems(given: Mapping[str, Any], flags: Sequence[str]) -> Iterator[str]:
    """A line for the first flag that each check finds it cannot work with. given: of `read_options`, complete except
    for what is missing.
    """
    for check in (check_refused, check_secrets, check_shapes, check_places, check_setup, check_local):
        try:
            check(given)
        except ValueError as error:
            yield str(error)
    if any(flag.split("=")[0] == "--save_main_session" for flag in flags):
        yield f"--save_main_session: {REFUSED['save_main_session']}"


def check_refused(given: Mapping[str, Any]) -> None:
    for name, instead in REFUSED.items():
        if given.get(name):
            raise ValueError(f"--{name}: {instead}")
    if given.get("flexrs_goal") == "COST_OPTIMIZED":
        if given.get("autoscaling_algorithm") == "NONE":
            raise ValueError("--flexrs_goal: COST_OPTIMIZED needs autoscaling, leave --autoscaling_algorithm out")
        if given.get("resource_hints"):
            raise ValueError(
                "--flexrs_goal: COST_OPTIMIZED cannot be combined with --resource_hint; give a --machine_type"
            )


def check_secrets(given: Mapping[str, Any]) -> None:
    """Options are stored with their job in clear text, readable by everyone who may view jobs."""
    for name, value in given.items():
        text = "\n".join(texts(value))
        keys = [key for found in KEY.finditer(text) for key in found.groups() if key]
        named = any(SECRET_NAME.search(key) for key in (name, *keys) if key not in NOT_SECRET)
        if value and (named or SECRET_VALUE.search(text)):
            raise ValueError(
                f"--{name}: it looks like a credential, and options are stored with the job in clear text; workers act "
                "as --service_account_email and need none"
            )


def check_shapes(given: Mapping[str, Any]) -> None:
    for name, shape, allowed in (
        ("project", PROJECT, "a project's id"),
        ("region", REGION, "a region such as europe-west4"),
        ("subnetwork", SUBNETWORK, "regions/REGION/subnetworks/NAME, or its full address,"),
        ("dataflow_kms_key", KMS_KEY, "projects/P/locations/REGION/keyRings/R/cryptoKeys/K"),
        ("service_account_email", ACCOUNT, "NAME@PROJECT.iam.gserviceaccount.com"),
        ("sdk_container_image", IMAGE, "REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST"),
    ):
        if given.get(name) and not shape.fullmatch(given[name]):
            raise ValueError(f"--{name}: {given[name]!r} given, {allowed} is allowed")
    for name in ("temp_location", "staging_location"):
        if given.get(name):
            check_bucket(f"--{name}", given[name])
    image = given.get("sdk_container_image")
    if image:
        match = IMAGE.fullmatch(image)
        if match and not match["digest"] and match["tag"] in (None, "latest"):
            raise ValueError(
                f"--sdk_container_image: {image!r} given, a tag other than latest, or a digest, is allowed; workers "
                "that start an hour later must run the same code"
            )


def check_places(given: Mapping[str, Any]) -> None:
    """Refuse resources outside the region of the job, as far as names show."""
    region = given.get("region")
    if not region:
        return
    for name, shape in (("subnetwork", SUBNETWORK), ("dataflow_kms_key", KMS_KEY)):
        match = shape.fullmatch(given.get(name) or "")
        if match and match["region"] != region:
            raise ValueError(f"--{name}: in {match['region']}, but the job is in {region} (--region): one must change")
    if given.get("worker_region") not in (None, region):
        raise ValueError(f"--worker_region: {given['worker_region']} given, the shuffle service needs it in {region}")
    if given.get("worker_zone") and not given["worker_zone"].startswith(f"{region}-"):
        raise ValueError(f"--worker_zone: {given['worker_zone']} given, a zone of {region} (--region) is allowed")


def check_setup(given: Mapping[str, Any]) -> None:
    """`--setup_file` means the package built from this code, wherever that is installed."""
    if not given.get("setup_file"):
        return
    setup = Path(given["setup_file"])
    if setup.name != "setup.py" or not (setup.parent / Path(__file__).relative_to(HERE.parent)).is_file():
        raise ValueError(f"--setup_file: {given['setup_file']!r} given, refinery's own setup.py is allowed")
    if given.get("sdk_container_image"):
        raise ValueError("--setup_file: --sdk_container_image given, too, which contains the package; leave one out")
    if given.get("use_public_ips") is None:
        raise ValueError(
            "--setup_file: every worker installs its libraries from the internet; add --use_public_ips, or "
            "--no_use_public_ips where the subnetwork has Cloud NAT"
        )


def check_local(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        for text in texts(value):
            if name != "setup_file" and is_local(text):
                raise ValueError(f"--{name}: {text!r} given, but workers cannot read a path of this machine")


def is_local(text: str) -> bool:
    """Whether an option's value is a local path, by its form or because it exists."""
    return bool(LOCAL.search(text)) or ("/" in text and os.path.exists(text))


def texts(value: Any) -> list[str]:
    """An option's value as text: one for each item of a list, JSON for an object."""
    if isinstance(value, list | tuple):
        return [text for item in value for text in texts(item)]
    return [value if isinstance(value, str) else json.dumps(value, default=str)]


def check_reach(recipe: Recipe, reuse: str = "") -> None:
    """Raises RecipeError, one line with the key, for a file of the recipe that workers on Dataflow cannot read.

    reuse: the prefix whose phases are reused, or "".
    """
    for line in out_of_reach(recipe):
        raise RecipeError(line)
    if reuse and not reuse.startswith("gs://"):
        raise RecipeError(f"--reuse: {reuse!r} given, gs://BUCKET/… is allowed on Dataflow")


def check_reach_of(files: Mapping[str, str]) -> None:
    """Raises RecipeError for one of these files, by key, that workers on Dataflow cannot read."""
    for line in _out_of_reach(files.items()):
        raise RecipeError(line)


def out_of_reach(recipe: Recipe) -> Iterator[str]:
    """A line for every file of the recipe that workers on Dataflow cannot read."""
    return _out_of_reach(named_files(recipe))


def _out_of_reach(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    for key, path in files:
        if not path.startswith("gs://") and not (key.startswith("sources[") and is_remote(path)):
            yield (
                f"{key}: {path!r} given, which workers on Dataflow cannot see; copy it (gcloud storage cp) and name "
                "gs://BUCKET/…"
            )


def named_files(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(key in the recipe, path) of every file that workers read by name: inputs, models, lists, reference corpora."""
    for index, source in enumerate(recipe.sources):
        if not source.enabled:
            continue
        for path in source.paths:
            yield f"sources[{index}].paths", path
        for path in source.path_lists:
            yield f"sources[{index}].path_lists", path
    for index, corpus in enumerate(recipe.reference_corpora):
        yield f"reference_corpora[{index}].prefix", corpus.prefix
        if corpus.work:
            yield f"reference_corpora[{index}].work", corpus.work
    for section, path in recipe.files():
        if section != "reference_corpora":
            yield key_of(section, getattr(recipe, section), path), path


def key_of(section: str, params: Any, path: str) -> str:
    """The key in a section whose value is the path."""
    for name, value in params if isinstance(params, Params) else ():
        if value == path or (isinstance(value, tuple) and path in value):
            return f"{section}.{name}"
    return section
