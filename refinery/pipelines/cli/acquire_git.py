"""`refinery acquire git`: source files of repositories."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import result, say, sized
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery acquire git repositories.yaml --output repos
  refinery acquire git --url https://github.com/redis/redis --tag 7.2.4 --output repos
  refinery acquire git --clone . --commit 0123456789abcdef0123456789abcdef01234567 --output gs://bucket/repos
where repositories.yaml is (docs/acquisition.md has all keys):
  repositories:
    - {url: "https://github.com/redis/redis", tag: "7.2.4"}
    - {clone: ../linux, commit: 0123456789abcdef0123456789abcdef01234567}
    - {tarball: zlib-1.3.1.tar.gz, commit: 0123456789abcdef0123456789abcdef01234567}
    - {files: "rows/*.parquet"}
Interrupted? Run the same command again: repositories that are done are not read again."""
TIMEOUT = 1800.0
# Keys of a list's entry (pipelines/acquire/listing.py) that the command may say instead of a list, and what they are.
SINGLE = {
    "url": "one repository instead of a list: its https:// address",
    "clone": "instead of a list: a clone on this machine",
    "tarball": "instead of a list: a .tar, compressed or not; needs --commit",
    "files": "instead of a list: JSON Lines or Parquet with columns repo, commit, path, content",
    "tag": "the tag of --url or --clone to take",
    "commit": "the commit to take, all its digits (`git rev-parse NAME`)",
    "name": "what the records call the repository (default: after its address or folder)",
}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "list",
        nargs="?",
        default="",
        metavar="LIST",
        help="the repositories: a YAML file as below, or JSON Lines (*.jsonl)",
    )
    parser.add_argument(
        "--output", required=True, metavar="PREFIX", help="where the records go: a folder, gs://… or s3://…"
    )
    for name, meaning in SINGLE.items():
        parser.add_argument(f"--{name}", default="", metavar=name.upper(), help=meaning)
    parser.add_argument(
        "--max-file-bytes",
        type=sized,
        metavar="N",
        help="larger files are skipped (limits.max_record_bytes)",
    )
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT, metavar="S", help="seconds for a fetch, and for git to answer (1800)"
    )
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Take what the list names, and say what to write into a recipe.

    Raises ValueError for what cannot work, OSError for repositories that fail.
    """
    from refinery.pipelines.acquire.acquisition import acquisition
    from refinery.pipelines.acquire.listing import check_list, read_list
    from refinery.transforms.read.params import LimitParams

    single = {name: value for name in SINGLE if (value := getattr(args, name))}
    if bool(args.list) == bool(single):
        raise ValueError("acquire git: a list, or one repository by --url, --clone, --tarball or --files, is needed")
    most = LimitParams().max_record_bytes if args.max_file_bytes is None else args.max_file_bytes
    if most < 1:
        raise ValueError(f"--max-file-bytes: {most} given, 1 or more is allowed")
    if not 0 < args.timeout < float("inf"):
        raise ValueError(f"--timeout: {args.timeout:g} given, a number above 0 is allowed")
    repositories = read_list(args.list) if args.list else check_list([single], "")
    for line in acquisition(repositories, args.output, most, args.timeout, say).run():
        result(line)
    return ExitCode.DONE


COMMAND = Command(
    name="acquire git",
    summary="source files of repositories, each pinned by a tag or a commit",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
