"""Beam's local job service with this project's settings: `python -m refinery.pipelines.runners.job_service --help`.

Beam's own (`python -m apache_beam.runners.portability.local_job_service_main`) flushes data by time, which loses
elements, and waits without end for a worker that died. Flags are Beam's; run jobs on it with
`--runner PortableRunner --job_endpoint localhost:PORT`.
"""

import sys

from apache_beam.runners.portability import local_job_service_main

from refinery.pipelines.runners.beam_settings import settle
from refinery.pipelines.runners.gone_workers import fail_with_workers


def main() -> None:
    """Serve until interrupted."""
    settle()
    fail_with_workers()
    local_job_service_main.run(sys.argv[1:])


if __name__ == "__main__":
    main()
