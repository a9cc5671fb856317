"""The golden outputs of every stage that judges single documents, made by eight threads of a new process at once.

Workers of many engines are threads (Dataflow, Prism, job services). They share what a stage prepares and what modules
keep: models, compiled patterns, caches. A new process, since much of that is made at the first call.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from refinery.transforms.core.stage import Stage
from tests import golden

THREADS = 8


def judged_by_threads(stage: Stage[Any], inputs: Iterable[Any], *variants: Any) -> Iterator[golden.Output]:
    """As `golden.judged`, which takes one document after the other."""
    docs = list(inputs)
    for params in variants:
        resource = (stage.prepare(params),) if stage.prepare else ()
        judge = partial(golden.answers_to, stage, resource=resource, params=params)
        with ThreadPoolExecutor(THREADS) as pool:
            for answers in pool.map(judge, docs):
                yield from answers


def main() -> None:
    """Print name -> digest."""
    sys.setswitchinterval(1e-5)  # seconds
    golden.judged = judged_by_threads  # type: ignore[assignment]  # for every stage's outputs
    judging = [name for name, (_, part) in golden.parts().items() if getattr(part, "judge", None)]
    print(json.dumps({name: golden.golden(name)["sha256"] for name in judging}))


if __name__ == "__main__":
    main()
