"""What users give never becomes a second command, a second line, or a secret that others can read."""

import subprocess

import pytest

from refinery.pipelines.runners.cluster.arrays import Array, arrays, ranges
from refinery.pipelines.runners.cluster.words import (
    absolute,
    check_no_secrets,
    folder_word,
    one_line,
    plain,
    quoted,
)

HOSTILE = ["a b", "$(touch x)", "`touch x`", "'; touch x; '", '"', "\\", "*", "~", "#x", "!", "-n", "é", "a=b c", ""]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_shell_reads_the_word_itself(word: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf '%s|' {quoted([word, 'next'])}"], capture_output=True, check=True)
    assert said.stdout.decode() == f"{word}|next|"


@pytest.mark.parametrize("word", ["a\nb", "a\rb", "a\0b", "a\x1b[2J", "\udcff", "a\u2028b"])
def test_what_does_not_print_is_refused(word: str) -> None:
    for check in (lambda: one_line("--set", word), lambda: plain("--set", word), lambda: folder_word("--set", word)):
        with pytest.raises(ValueError, match="--set"):
            check()


@pytest.mark.parametrize(
    ("given", "expanded"),
    [("$HERE", "/x y"), ("${HERE}/a b", "/x y/a b"), ("$HERE/$(touch x)", "/x y/$(touch x)"), ("/a/$HERE", "/a/$HERE")],
)
def test_only_a_variable_at_the_beginning_of_a_folder_is_one(given: str, expanded: str) -> None:
    script = f"printf '%s' {folder_word('--scratch', given)}"
    said = subprocess.run(["bash", "-c", script], env={"HERE": "/x y"}, capture_output=True, check=True)
    assert said.stdout.decode() == expanded


def test_a_folder_whose_variable_is_not_set_ends_the_job() -> None:
    script = f"set -u; echo {folder_word('--scratch', '$NOWHERE/a')}"
    said = subprocess.run(["bash", "-c", script], env={}, capture_output=True, check=False)
    assert said.returncode != 0 and b"NOWHERE: is not set" in said.stderr


@pytest.mark.parametrize("text", ["'", '"', "\\", "#", "%", "`", "$"])
def test_what_means_something_in_a_line_of_sbatch_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="#SBATCH"):
        plain("--scripts", f"/a{text}b")


@pytest.mark.parametrize(
    "word",
    [
        "s3://AKIAABCDEFGHIJKLMNOP:x@bucket",
        "https://user:word@host/file",
        "https://bucket/file?X-Amz-Signature=abc",
        "encode.api_key=abc",
        "track.password=abc",
    ],
)
def test_credentials_are_refused_and_not_repeated(word: str) -> None:
    with pytest.raises(ValueError, match="looks like a credential") as caught:
        check_no_secrets(["--set", word])
    assert "=abc" not in str(caught.value)


def test_ordinary_words_are_no_credentials() -> None:
    check_no_secrets(
        ["r.yaml", "--set", "near_dup.threshold=0.8", "--set", "tokenizer.path=t.json", "s3://b/secrets/x"]
    )


def test_arrays_keep_within_the_largest_index() -> None:
    assert list(arrays([*range(7)], 3)) == [Array(0, (0, 1, 2)), Array(3, (0, 1, 2)), Array(6, (0,))]
    assert [(a.offset, a.text) for a in arrays([3, 7, 9, 10, 1001, 2500], 1001)] == [
        (0, "3,7,9-10"),
        (1001, "0"),
        (2002, "498"),
    ]
    assert list(arrays([], 10)) == []


def test_ranges_and_places() -> None:
    assert ranges([]) == "" and ranges([4]) == "4" and ranges([1, 2, 4]) == "1-2,4"
    assert absolute("s3://b/x") == "s3://b/x" and absolute("") == "" and absolute("/a") == "/a"
