"""What a stage says of documents, whatever it is made of, and its digest: here, and in another process."""

import hashlib
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Drop
from refinery.transforms.core.stage import Stage


def resource_of(stage: Stage[Any], params: Any) -> tuple[Any, ...]:
    """What the judge takes beside the document."""
    return (stage.prepare(params),) if stage.prepare else ()


def judged(stage: Stage[Any], params: Any, resource: tuple[Any, ...], doc: Any) -> Answer:
    """The answer; what a stage that splits emits as a tuple."""
    answer = answer_of(stage.judge(doc, *resource, params=params))  # type: ignore[misc]  # a stage under test has one
    return answer._replace(result=tuple(answer.result)) if stage.splits and not answer.reason else answer


def judge_all(stage: Stage[Any], params: Any, docs: Sequence[Any]) -> list[Answer | Exception]:
    """The answers, in order. An exception is an answer, too."""
    resource = resource_of(stage, params)
    found: list[Answer | Exception] = []
    for doc in docs:
        try:
            found.append(judged(stage, params, resource, doc))
        except Exception as error:  # noqa: BLE001 - said by the test of hostile texts
            found.append(error)
    return found


def kept_of(answer: Any) -> tuple[Any, ...]:
    """The documents of an answer."""
    if isinstance(answer, Exception) or isinstance(answer.result, Drop):
        return ()
    return answer.result if isinstance(answer.result, tuple) else (answer.result,)


def digest(value: Any) -> str:
    """Of an answer, whatever it is made of."""
    return hashlib.sha256(repr(plain(value)).encode("utf-8", "surrogatepass")).hexdigest()


def plain(value: Any) -> Any:
    """An answer as what prints the same wherever it is equal."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, Mapping):
        return sorted((name, plain(inner)) for name, inner in value.items())
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    if isinstance(value, Exception):
        return type(value).__name__
    if is_dataclass(value):
        return type(value).__name__, [(each.name, plain(getattr(value, each.name))) for each in fields(value)]
    return value


def main() -> None:
    """Print the digests of a pickled stage's answers; the file is the first argument."""
    stage, params, docs = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 - written by the test
    print(*(digest(answer) for answer in judge_all(stage, params, docs)))
