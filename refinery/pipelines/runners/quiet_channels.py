"""No tracebacks of Beam's channel threads in this process' output: `quieten_channels`."""

import threading

import grpc


def quieten_channels() -> None:
    """Keep Beam's channel threads from printing tracebacks when a job ends early: the job's own error is raised.
    As often as you like."""
    before = threading.excepthook
    if getattr(before, "quietens_channels", False):
        return

    def hook(args: threading.ExceptHookArgs) -> None:
        if not (args.exc_type and issubclass(args.exc_type, grpc.RpcError)):
            before(args)

    hook.quietens_channels = True  # type: ignore[attr-defined]  # marks our own function
    threading.excepthook = hook
