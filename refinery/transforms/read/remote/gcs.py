"""Inputs in Cloud Storage (buckets.py says how), by Google's default credentials, as the outputs.

A version is an object's generation: what is written again, be it the same bytes, is another one.
"""

from refinery.loader.storage.gcs_store import GcsStore
from refinery.transforms.read.remote.buckets import BucketInputs


class GcsInputs(GcsStore, BucketInputs):
    """The objects of a bucket in Cloud Storage."""

    version_name = "generation"
    lists_checksums = True

    def pay(self, payer: str) -> None:
        self.payer = payer
