"""Files of the shape of the inputs, beside the accounts of the run that wrote them: where each is, and their list.

Commands that look at accounts read them here, without what a run needs to write them.
"""

from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.sealed import unseal

ACCOUNTS = ".refinery"  # behind the name of the outputs: where the accounts of a run are
OUTPUTS_KIND = "refinery-outputs"
OUTPUTS = "outputs.json"  # in the accounts: every file that was written


def accounts_of(output: str) -> str:
    """The prefix with the accounts of such a run. output: where its files go."""
    return output.rstrip("/") + ACCOUNTS


def outputs_of(accounts: str) -> str:
    """Where the files go of a run whose accounts are there. Raises ValueError for another prefix."""
    place = accounts.rstrip("/")
    if not place.endswith(ACCOUNTS) or place == ACCOUNTS:
        raise ValueError(f"{accounts}: a name that ends in {ACCOUNTS} is needed for accounts")
    return place.removesuffix(ACCOUNTS)


def load_outputs(data: bytes, what: str) -> list[dict[str, Any]]:
    """What `dump_outputs` wrote. Raises FormatError."""
    payload = unseal(data, what)
    files = payload.get("files")
    if payload.get("kind") != OUTPUTS_KIND or not isinstance(files, list):
        raise FormatError(f"{what}: no list of output files")
    return files
