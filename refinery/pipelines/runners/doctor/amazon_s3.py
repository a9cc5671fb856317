"""AWS credentials and s3:// buckets: there or not, from where, and whether what is published would stay as it is.

No secret is shown, and nothing waits for more than a few seconds. Nothing is said where nothing named is on s3://.
"""

from collections.abc import Iterable, Iterator

from refinery.loader.storage.aws.credentials import provider
from refinery.loader.storage.aws.keys import CredentialsError
from refinery.loader.storage.aws.settings import Settings, read_settings
from refinery.loader.storage.s3_store import S3Store
from refinery.loader.storage.store import StorageError
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning, within
from refinery.pipelines.runners.doctor.google_cloud import REQUEST, SECONDS, reach

CHECK = "AWS credentials"
SCHEME = "s3://"


def amazon(places: Iterable[str], written: Iterable[str]) -> Iterator[Finding]:
    """Credentials, then a line for each bucket, and one for each place that is written to. places, written: of any
    storage, only s3:// ones count."""
    own = [place for place in places if place.startswith(SCHEME)]
    buckets = sorted({place.split("/")[2] for place in own})
    if not buckets:
        return
    try:
        settings = read_settings()
    except ValueError as error:
        yield problem(CHECK, str(error))
        return
    found = credentials(settings)
    yield found
    network = f"check the network, and whether it reaches {settings.endpoint or 'amazonaws.com'}?"
    reached = list(reach([f"{SCHEME}{bucket}" for bucket in buckets], network))
    yield from reached
    if all(finding.state == "ok" for finding in reached):
        yield from (exclusive(place) for place in written if place.startswith(SCHEME))


def credentials(settings: Settings) -> Finding:
    """Where the keys are from."""
    if settings.unsigned:
        return ok(CHECK, "none are used: AWS_SKIP_SIGNATURE is set")
    try:
        keys = within(SECONDS, provider().get)
    except (CredentialsError, TimeoutError) as error:
        return problem(CHECK, f"{error}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
    if keys is None:
        return warning(CHECK, "none found, so only public buckets can be read; set AWS_ACCESS_KEY_ID, …")
    return ok(CHECK, f"of {keys.source}, for {settings.endpoint or 'AWS'}")


def exclusive(place: str) -> Finding:
    """Whether the service keeps one writer from replacing what another one published: tried out."""
    check = f"{place}, exclusive writes"
    try:
        within(2 * SECONDS, lambda: S3Store(place, REQUEST).check_exclusive(large=True))
    except (StorageError, ValueError, TimeoutError) as error:
        return problem(check, f"{str(error).removeprefix(f'{place}: ')}: use another store, or another --output")
    return ok(check, "tested with a temporary object: published objects are never replaced")
