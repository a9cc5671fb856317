"""What a job reports beside its documents: JSON bytes, which no runner ever pickles."""

from typing import Any

import orjson

MAIN, SIDE_OUTPUT = "main", "side-output"


def side_output_record(kind: str, **fields: Any) -> bytes:
    """A side-output element: JSON bytes, so no runner ever pickles one."""
    return orjson.dumps({"kind": kind, **fields}, option=orjson.OPT_SORT_KEYS)
