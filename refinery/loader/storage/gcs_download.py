"""Ranges of objects in Cloud Storage, received into the memory where they stay.

The client's own download copies pieces of 8 KiB, each in several steps of Python: half of a core at 400 MB/s. This
takes the client's session, with its credentials and connections, and the media link that the JSON API documents
(https://cloud.google.com/storage/docs/json_api/v1/objects/get).
"""

import http.client
from typing import NamedTuple
from urllib.parse import quote

from refinery.loader.storage import gcs_client
from refinery.loader.storage.fetch import Attempt, RangeResponse, Transient
from refinery.loader.storage.receive import Buffers, crc32c_of, receive


class Wanted(NamedTuple):
    """Bytes [start, stop) of an object. generation: the one that it must have, "" for any."""

    bucket: str
    name: str
    start: int
    stop: int
    generation: str = ""
    payer: str = ""  # project that is billed for the request


def download(wanted: Wanted, attempt: Attempt, buffers: Buffers) -> RangeResponse:
    """The stored bytes, also of objects with Content-Encoding: gzip. The version is the generation.

    Raises the exceptions of google.api_core for answers without bytes, those of requests, Transient, OSError.
    """
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError

    client = gcs_client.client()
    path = f"/download/storage/v1/b/{quote(wanted.bucket, safe='')}/o/{quote(wanted.name, safe='')}"
    condition = f"&ifGenerationMatch={wanted.generation}" if wanted.generation else ""
    billed = f"&userProject={quote(wanted.payer, safe='')}" if wanted.payer else ""
    # gzip: otherwise the service unpacks what is stored so, and ignores the range.
    headers = {"Range": f"bytes={wanted.start}-{wanted.stop - 1}", "Accept-Encoding": "gzip"}
    timeout = (attempt.params.connect_timeout, attempt.params.read_timeout)
    url = f"{client.api_endpoint}{path}?alt=media{condition}{billed}"
    try:
        response = client._http.get(url, headers=headers, stream=True, timeout=timeout)
    except GoogleAuthError:  # some are ValueErrors, too
        raise
    except ValueError as error:  # of requests: redirected to what is not a URL
        raise Transient(error) from error
    try:
        if response.status_code not in (http.client.OK, http.client.PARTIAL_CONTENT):
            raise exceptions.from_http_response(response)  # type: ignore[no-untyped-call]
        raw: http.client.HTTPResponse = response.raw._original_response
        data, total = receive(raw, wanted.start, wanted.stop, attempt, buffers)
        found = RangeResponse(data, total, raw.getheader("X-Goog-Generation") or "", crc32c_of(raw))
        response.raw.release_conn()  # read to its end: the next request takes it
        return found
    except http.client.HTTPException as error:
        raise Transient(error) from error
    finally:
        response.close()
