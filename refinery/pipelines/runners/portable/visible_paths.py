"""Whether workers elsewhere will see the local files of a run, as far as the flags say. The first job of a run tries it
out (same_code.py); this is known before anything is launched."""

import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator, Sequence

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.dataflow.flag_checks import named_files
from refinery.pipelines.runners.portable.addresses import (
    environment_type,
    external_address,
    host_and_port,
    servers_of,
)
from refinery.pipelines.runners.portable.note import Note
from refinery.transforms.core.data_text.plain_yaml import RecipeError

HERE = ("localhost", socket.gethostname())
BUCKET = "gs://BUCKET/… or s3://BUCKET/… works everywhere"


def run_places(recipe: Recipe, output: str, work: str) -> list[tuple[str, str]]:
    """(flag or key, path) of everything that workers read and write by name."""
    own = [("--output", output), ("--work", work)]
    return [*((flag, place) for flag, place in own if place), *named_files(recipe)]


def check_seen(runner: str, flags: Sequence[str], places: Iterable[tuple[str, str]]) -> None:
    """Raises RecipeError, one line, for a path that workers cannot see."""
    for note in unseen(runner, flags, places):
        if note.what == "problem":
            raise RecipeError(note.line)


def unseen(runner: str, flags: Sequence[str], places: Iterable[tuple[str, str]]) -> Iterator[Note]:
    """What is wrong with local paths: a problem where workers cannot see one, a warning where it depends on how they
    were set up."""
    local = [(key, path) for key, path in places if "://" not in path]
    kind = environment_type(runner, flags)
    if kind == "LOOPBACK" or not local:
        return
    hosts = worker_hosts(runner, flags, kind)
    elsewhere = ", ".join(host for host in hosts if not is_here(host))
    for key, path in local:
        given = f"{key}: {path!r:.200} given"
        if kind == "DOCKER":
            yield Note(
                "problem",
                f"{given}, but containers (--environment_type=DOCKER, the default) do not see files of any machine; "
                f"{BUCKET}, or use EXTERNAL workers that mount it",
            )
        elif os.path.isabs(path):
            if elsewhere:
                yield Note("warning", f"{given}: {elsewhere} must mount it under the same name; {BUCKET}")
        elif elsewhere:
            yield Note("problem", f"{given}, a relative path that workers at {elsewhere} cannot know; {BUCKET}")
        else:
            yield Note("warning", f"{given}, a relative path: start the workers in this folder, or give the whole path")


def worker_hosts(runner: str, flags: Sequence[str], kind: str) -> list[str]:
    """Where workers run, as far as the flags say: at the pool, or where the engine is."""
    portable = PipelineOptions(list(flags)).view_as(PortableOptions)
    pool = external_address(portable) if kind == "EXTERNAL" else ""
    named = [pool] if pool else [server.value for server in servers_of(runner, flags)]
    hosts = []
    for address in named:
        try:
            hosts.append(host_and_port(address)[0])
        except ValueError:
            continue  # no address; that was said
    return hosts


def is_here(host: str) -> bool:
    """Whether a name or an address means this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in HERE
    return address.is_loopback or address.is_unspecified
