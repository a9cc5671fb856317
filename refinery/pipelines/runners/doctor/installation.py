"""Python, the compiled kernels and the libraries: what is installed, beside what the distribution's metadata asks for.

Nothing here is imported that only the pipeline has, so it also runs where the loader alone is installed.
"""

import importlib
import re
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import refinery
from refinery import DISTRIBUTION
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning
from refinery.pipelines.shell.installed import UnusableCommandError, installed_commands

PACKAGE = Path(refinery.__file__).parent
BASE, PIPELINE = "", "pipeline"  # extras: what a training node has, what makes corpora


def python_version() -> Finding:
    """Whether this Python is one that the distribution is made for."""
    found = "{}.{}.{}".format(*sys.version_info[:3])
    allowed = distribution(DISTRIBUTION).metadata["Requires-Python"] or ""
    try:
        from packaging.specifiers import SpecifierSet
    except ModuleNotFoundError:  # the loader alone: pip compared them when it was installed
        return ok("Python", f"{found}, {sys.executable}")
    if not SpecifierSet(allowed).contains(found, prereleases=True):
        return problem("Python", f"{found} runs this, {allowed} is needed; make an environment with that Python")
    return ok("Python", f"{found} ({allowed} is needed), {sys.executable}")


def kernel_names() -> list[str]:
    """The modules that setup.py makes: one for each C file in a folder `native` of a package."""
    files = sorted(PACKAGE.glob("*/native/*.c"))
    return [".".join((refinery.__name__, *file.relative_to(PACKAGE).with_suffix("").parts)) for file in files]


def kernels() -> Iterator[Finding]:
    """Whether every kernel can be loaded, and, in a checkout, is newer than its sources."""
    names = kernel_names()
    in_checkout = (PACKAGE.parent / "setup.py").is_file()
    advice = "run `pip install --editable .`, which compiles them" if in_checkout else "install the wheel again"
    failed, stale = [], []
    for name in names:
        try:
            file = importlib.import_module(name).__file__
        except ImportError as error:
            failed.append(f"{name} ({error})")
            continue
        if in_checkout and file and Path(file).stat().st_mtime < newest_source(name):
            stale.append(name)
    if failed:
        yield problem("kernels", f"{len(failed)} of {len(names)} cannot be loaded: {', '.join(failed)}: {advice}")
    if stale:
        yield warning("kernels", f"older than their sources: {', '.join(stale)}: {advice}")
    if not failed and not stale:
        yield ok("kernels", f"all {len(names)} load")


def newest_source(name: str) -> float:
    """When the C file of a kernel, or a header that its package shares, was changed last; seconds."""
    file = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".c")
    return max(path.stat().st_mtime for path in (file, *(file.parent / "include").rglob("*.h")))


def libraries(needed: bool) -> Iterator[Finding]:
    """A line for each extra of the distribution: which of its libraries are missing, or of a version that is not its.

    needed: whether a recipe is to be run, so [pipeline] must be there.
    """
    try:
        import packaging  # noqa: F401 - brought along by [pipeline]; versions cannot be compared without
    except ModuleNotFoundError:
        state = problem if needed else warning
        yield state("libraries", f"only the loader is installed; commands need {install(PIPELINE)}")
        return
    for extra in (BASE, *(distribution(DISTRIBUTION).metadata.get_all("Provides-Extra") or ())):
        name = f"libraries [{extra}]" if extra else "libraries"
        deep = extra in (BASE, PIPELINE)
        lacking = list(lacking_libraries(extra, deep))
        if not lacking:
            yield ok(name, "all are installed, in the versions that the project needs")
        elif extra == BASE or (extra == PIPELINE and (needed or any(" found" in line for line in lacking))):
            yield problem(name, f"{'; '.join(lacking)}: {install(extra)}")
        elif extra == PIPELINE:
            yield warning(name, f"{'; '.join(lacking)}: commands that run recipes need {install(extra)}")
        else:
            yield ok(name, f"not needed to make corpora; {'; '.join(lacking)}")


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"`pip install '{DISTRIBUTION}[{extra}]'`" if extra else f"`pip install {DISTRIBUTION}`"


def lacking_libraries(extra: str, deep: bool) -> Iterator[str]:
    """What of an extra is missing or has another version, each once. deep: also what its libraries need themselves.

    Cost: half a second for the 150 libraries of [pipeline].
    """
    todo = [(requirement, "") for requirement in requirements(DISTRIBUTION, extra)]
    seen = set()
    while todo:
        requirement, whose = todo.pop(0)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        try:
            found = distribution(name).version
        except PackageNotFoundError:
            found = ""
        wanted = f"{name}{requirement.specifier}"
        if found and requirement.specifier.contains(found, prereleases=True):
            pass
        elif (wanted, found) not in seen:
            yield f"{name} {found} found, {wanted} needed{whose}" if found else f"{wanted} is missing{whose}"
        seen.add((wanted, found))
        for inner in ("", *sorted(requirement.extras)) if deep and found else ():
            if (name, inner) not in seen:
                seen.add((name, inner))
                todo += [(need, f" by {name}") for need in requirements(name, inner)]


def requirements(name: str, extra: str) -> list[Any]:
    """What a distribution asks for on this machine, with an extra alone or ("") without any: packaging's objects."""
    from packaging.requirements import Requirement

    found = [Requirement(line) for line in distribution(name).requires or ()]
    if not extra:
        return [need for need in found if need.marker is None or need.marker.evaluate({"extra": ""})]
    return [
        need
        for need in found
        if need.marker and need.marker.evaluate({"extra": extra}) and not need.marker.evaluate({"extra": ""})
    ]


def commands(taken: Collection[str]) -> Iterator[Finding]:
    """Whether the commands that other packages declare can be used; nothing where there are none."""
    usable = []
    for each in installed_commands(taken):
        try:
            each.load()
        except UnusableCommandError as error:
            yield warning("commands", str(error))
        else:
            usable.append(f"{each.name} of {each.package}")
    if usable:
        yield ok("commands", f"from other packages: {', '.join(usable)}")
