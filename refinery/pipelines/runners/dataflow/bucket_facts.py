"""What a bucket of Cloud Storage says of itself: where it is, and whether deleted objects are billed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from refinery.loader.storage import gcs_client
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.store import StorageError

SCHEME = "gs://"
DAY = 86_400


class Use(StrEnum):
    """What a run does with a bucket. temporary: what it writes there is deleted again."""

    INPUT = "input"
    OUTPUT = "output"
    TEMPORARY = "temporary"


@dataclass(frozen=True)
class BucketFacts:
    """places: regions or a multi-region, in lower case. kept_days: how long a deleted object is still stored and
    billed.
    """

    name: str
    uses: frozenset[Use] = frozenset()
    places: Sequence[str] = ()
    kept_days: float = 0.0

    def has(self, region: str) -> bool:
        """Whether the bucket's data is in that region itself."""
        return not self.places or region in self.places


def look_at(bucket: str, uses: frozenset[Use], params: FetchParams) -> BucketFacts:
    """What the service says of a bucket. Raises StorageError and FileNotFoundError; without the permission
    storage.buckets.get, which reading objects does not include, StorageError of status 403."""
    from google.api_core import exceptions

    store = GcsStore(f"{SCHEME}{bucket}", params)
    timeout = (params.connect_timeout, params.read_timeout)

    def once() -> BucketFacts:
        found = gcs_client.client().get_bucket(bucket, retry=None, timeout=timeout)
        policy = found.soft_delete_policy
        kept = float((policy.retention_duration_seconds if policy else 0) or 0) / DAY
        places = tuple(str(place).lower() for place in found.data_locations or [found.location] if place)
        return BucketFacts(bucket, uses, places, kept)

    try:
        return store.retried("be looked up", store.root, once)
    except exceptions.NotFound:
        raise FileNotFoundError(store.root) from None


def buckets_of(places: Mapping[Use, Iterable[str]]) -> dict[str, frozenset[Use]]:
    """The buckets on gs:// among these places, with what they are used for."""
    found: dict[str, frozenset[Use]] = {}
    for use, urls in places.items():
        for url in urls:
            if url.startswith(SCHEME):
                bucket = url.split("/")[2]
                found[bucket] = found.get(bucket, frozenset()) | {use}
    return found


def known_facts(places: Mapping[Use, Iterable[str]], params: FetchParams) -> tuple[list[BucketFacts], list[str]]:
    """Facts of every bucket, and the names of those that could not be asked."""
    found, unknown = [], []
    for bucket, uses in buckets_of(places).items():
        try:
            found.append(look_at(bucket, uses, params))
        except (StorageError, FileNotFoundError):
            unknown.append(bucket)
    return found, unknown
