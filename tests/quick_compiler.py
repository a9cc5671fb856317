"""The C compiler without optimisation, for tests of what is compiled and not of how fast it runs."""

import os
import sysconfig
from pathlib import Path


def quick_compiler(folder: Path) -> dict[str, str]:
    """Variables under which setuptools compiles with everything that our own flags ask for, but -O0 behind them. A
    script is written into `folder`.
    """
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    script = folder / "quick-cc"
    script.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    script.chmod(0o755)
    return {"CC": str(script)}
