"""What Beam's processes have set otherwise: no flush by time in the launcher, no port that others reach."""

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import data_plane

from refinery.pipelines.runners.beam_settings import settle
from refinery.pipelines.runners.runner import Runner, launch_flags
from tests.sampling import one_commit_in_four

LOCAL = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def listening(port: int) -> set[str]:
    """Addresses, as the kernel writes them, at which something listens on this port."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, _, number = local.partition(":")
            if state == "0A" and int(number, 16) == port:
                found.add(address)
    return found


@pytest.mark.parametrize("module", [worker_handlers, local_job_service])
def test_servers_bind_to_this_machine_alone(module: object) -> None:
    settle()
    server = module.grpc.server(None)  # type: ignore[attr-defined]
    port = server.add_insecure_port("[::]:0")
    server.start()
    try:
        assert listening(port) and listening(port) <= LOCAL
    finally:
        server.stop(0)


@one_commit_in_four
def test_the_launcher_flushes_no_buffer_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 0 in every stream that the launcher opens towards workers."""
    limits = []
    make = data_plane.ClosableOutputStream.create

    def noting(close: object, flush: object = None, data_buffer_time_limit_ms: int = 0) -> object:
        limits.append(data_buffer_time_limit_ms)
        return make(close, flush, data_buffer_time_limit_ms)

    monkeypatch.setattr(data_plane.ClosableOutputStream, "create", staticmethod(noting))
    with Runner("local", workers=1, quiet=True).open() as runner:
        runner.run("test", lambda pipeline: pipeline | beam.Create([1, 2, 3]) | beam.Map(str))
    assert limits and set(limits) == {0}


@pytest.mark.parametrize("runner", ["local", "DirectRunner"])
@pytest.mark.parametrize("flag", ["--direct_num_workers=4", "--direct_running_mode=multi_processing"])
def test_flags_without_effect_are_refused(runner: str, flag: str) -> None:
    with pytest.raises(ValueError, match=flag.partition("=")[0]):
        launch_flags(runner, [flag], "out", "out/work")


def test_workers_of_a_pool_are_sent_to_the_address_that_is_served() -> None:
    """Beam sends them to the machine's name, which on many machines is another address."""
    settle()
    assert worker_handlers.ExternalWorkerHandler.host_from_worker(None) == "localhost"
