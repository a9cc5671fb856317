"""Lists of repositories: what they may say, and that what is refused is not quoted where it may be a secret."""

from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.acquire.listing import RepositoryParams, check_list, read_list

COMMIT = "abcdef01" * 5


def test_yaml_and_json_lines_mean_the_same_and_paths_begin_at_the_list(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        f"""repositories:
  - {{url: "https://example.org/org/x.git", tag: "1.0"}}
  - {{clone: clones/y, commit: {COMMIT}}}
  - {{tarball: /abs/z-1.tar.gz, commit: {COMMIT}}}
  - {{files: "rows/*.parquet"}}
"""
    )
    lines = [
        '{"url": "https://example.org/org/x.git", "tag": "1.0"}',
        f'{{"clone": "clones/y", "commit": "{COMMIT}"}}',
        f'{{"tarball": "/abs/z-1.tar.gz", "commit": "{COMMIT}"}}',
        '{"files": "rows/*.parquet"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    found = read_list(str(tmp_path / "a.yaml"))
    assert found == read_list(str(tmp_path / "a.jsonl"))
    assert [one.shown for one in found] == ["example.org/org/x", "y", "z-1", "parquet"]
    assert found[1].clone == str(tmp_path / "clones/y")
    assert found[3].files == str(tmp_path / "rows/*.parquet")


HIDDEN = "hunter2"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "nothing given, one of url, clone, tarball, files is needed"),
    "two": ({"url": "https://h/x", "clone": "x", "tag": "v1"}, "url and clone given"),
    "password": ({"url": f"https://me:{HIDDEN}@h/x", "tag": "v1"}, "without user, password"),
    "token in the query": (
        {"tarball": f"https://h/x.tar?t={HIDDEN}", "commit": COMMIT},
        "without user, password, query",
    ),
    "password of files": ({"files": f"https://me:{HIDDEN}@h/x.jsonl"}, "without user, password"),
    "scp": ({"url": f"me:{HIDDEN}@h:x", "tag": "v1"}, "an https:// address is allowed"),
    "ssh": ({"url": f"ssh://me:{HIDDEN}@h/x", "tag": "v1"}, "ssh://… given, an https:// address"),
    "git": ({"url": "git://h/x", "tag": "v1"}, "git://… given"),
    "file": ({"url": "file:///etc", "tag": "v1"}, "file://… given"),
    "ext": ({"url": f"ext::sh -c {HIDDEN}", "tag": "v1"}, "an https:// address is allowed"),
    "http": ({"url": "http://example.org/x", "tag": "v1"}, "https:// is allowed, http:// for loopback"),
    "an option": ({"url": "--upload-pack=touch x", "tag": "v1"}, "`-` in front"),
    "an option as clone": ({"clone": "--upload-pack=touch x", "tag": "v1"}, "`-` in front"),
    "a line break": ({"clone": "a\nb", "tag": "v1"}, "without control characters"),
    "a clone elsewhere": ({"clone": "https://h/x", "tag": "v1"}, "https://… given, a path is allowed"),
    "a path up": ({"url": "https://h/../x", "tag": "v1"}, "location: https://... given"),
    "a tag that is an option": ({"clone": "x", "tag": "--upload-pack=x"}, "the name of a tag is allowed"),
    "a tag that is a path": ({"clone": "x", "tag": "../../HEAD"}, "the name of a tag is allowed"),
    "a tag that is a range": ({"clone": "x", "tag": "a..b"}, "the name of a tag is allowed"),
    "a tag that is an expression": ({"clone": "x", "tag": "v1^{tree}"}, "the name of a tag is allowed"),
    "a tag of a tarball": ({"tarball": "x.tar", "tag": "v1"}, "a tarball needs the `commit`"),
    "no commit of a tarball": ({"tarball": "x.tar"}, "a tarball needs the `commit`"),
    "a commit of files": ({"files": "x", "commit": COMMIT}, "each row of files has its own"),
    "a name up": ({"clone": "x", "tag": "v1", "name": "a/../b"}, "name: 'a/../b' given"),
    "a sha256": ({"clone": "x", "tag": "v1", "sha256": "0"}, "64 of 0-9 a-f are allowed, of a tarball"),
    "a number": ({"clone": "x", "tag": 1.1}, r"tag: 1.1 \(a number\) given, text is allowed"),
    "a key": ({"clone": "x", "tga": "v1"}, "tga: unknown key, did you mean tag"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_refused_and_that_secrets_are_not_quoted(refused: str) -> None:
    entry, message = REFUSED[refused]
    with pytest.raises(ValueError, match=message) as error:
        check_list([entry], "")
    assert HIDDEN not in str(error.value)
    assert str(error.value).startswith("repositories[0]: ")


def test_every_mistake_of_a_list_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"repositories\[0\]: .*\nrepositories\[2\]: .*given twice"):
        check_list([5, {"clone": "x", "tag": "v1"}, {"clone": "y/x", "tag": "v2"}], "")
    for text in ("- x\n", "repositories: x\n", "repositories: []\n", "other: []\n", ""):
        (tmp_path / "a.yaml").write_text(text)
        with pytest.raises(ValueError, match=r"one key is allowed|one or more are needed"):
            read_list(str(tmp_path / "a.yaml"))
    (tmp_path / "a.jsonl").write_text("{\n")
    with pytest.raises(ValueError, match=r"a.jsonl:1: not JSON"):
        read_list(str(tmp_path / "a.jsonl"))


def test_tags_that_git_takes_are_taken() -> None:
    for tag in ("v1", "release/7.2.4", "1.0-rc1", "ünï", "a@b", "jdk-21+35"):
        assert RepositoryParams(clone="x", tag=tag).tag == tag
