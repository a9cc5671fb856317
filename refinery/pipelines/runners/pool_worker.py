"""A worker process of worker_pool.py: `python -m refinery.pipelines.runners.pool_worker CONTROL WORKER`.

CONTROL is the engine's address, WORKER the worker's id there. It ends when the engine closes the connection.
"""

import sys

from apache_beam.runners.worker.sdk_worker import SdkHarness

from refinery.pipelines.runners.timed_flush import NO_TIMED_FLUSH


def main(control: str, worker: str) -> None:
    """Work until the engine needs this worker no more."""
    SdkHarness(control, worker_id=worker, data_buffer_time_limit_ms=NO_TIMED_FLUSH).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
