"""Inputs in S3, or in anything that speaks its protocol (buckets.py says how)."""

from dataclasses import replace

from refinery.loader.storage.s3_store import S3Store
from refinery.transforms.read.remote.buckets import BucketInputs


class S3Inputs(S3Store, BucketInputs):
    """The objects of a bucket in S3."""

    version_name = "etag"
    lists_checksums = False

    def pay(self, payer: str) -> None:
        """S3 only asks for consent: who signs the requests pays."""
        if payer:
            self._settings = replace(self._settings, requester_pays=True)
