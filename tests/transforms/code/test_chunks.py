"""Chunks joined are the file, none exceeds its budget, and cuts fall between functions where they can."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.code import parse as parsing
from refinery.transforms.code.chunks import BRACES, SYNTAX, Chunk, chunk_source
from refinery.transforms.code.languages import KINDS, LANGUAGES, SELF_CONTAINED, language_of
from tests.sampling import scaled

WORD = re.compile(r"\w+|\s+|[^\w\s]")


def count(texts: Sequence[str]) -> list[int]:
    """Words, runs of whitespace and signs: a tokenizer whose counts depend on where a text is cut."""
    return [len(WORD.findall(text)) for text in texts]


def count_bytes(texts: Sequence[str]) -> list[int]:
    return [len(text.encode()) for text in texts]


def chunked(text: str, language: str, budget: int) -> list[tuple[Chunk, str]]:
    """Chunks with their texts, after checking what every chunking promises."""
    chunks = chunk_source(text, language, count, budget).chunks
    pieces = [text[one.start : one.end] for one in chunks]
    assert "".join(pieces) == text
    assert [one.start for one in chunks] == [0, *(one.end for one in chunks[:-1])][: len(chunks)]
    assert max(count(pieces), default=0) <= budget
    assert all(one.kind in KINDS and one.depth >= 0 and one.end > one.start for one in chunks)
    return list(zip(chunks, pieces, strict=True))


CPP = """// Copyright
#include <vector>
using std::vector;

namespace shapes {

// A point.
struct Point {
  int x;
  int y;
};

/* Adds. */
int add(int a, int b) {
  return a + b;
}

template <typename T>
T largest(const vector<T>& all) {
  T best = all[0];
  for (const T& one : all) {
    if (best < one) best = one;
  }
  return best;
}

}  // namespace shapes
"""


def test_a_file_that_fits_is_one_chunk() -> None:
    [(chunk, _)] = chunked(CPP, "cpp", 10_000)
    assert (chunk.kind, chunk.depth, chunk.whole) == ("NAMESPACE", 0, True)


def test_cuts_are_between_functions_and_comments_stay_with_what_they_explain() -> None:
    found = chunked(CPP, "cpp", 100)
    assert [piece.splitlines()[0] for _, piece in found] == ["// Copyright", "template <typename T>"]
    assert all(chunk.whole and chunk.depth == 1 for chunk, _ in found) and found[1][0].kind == "FUNC_BODY"
    assert "/* Adds. */" in chunked(CPP, "cpp", 85)[1][1].splitlines()[0]
    assert "namespace shapes" in found[0][1] and "struct Point" in found[0][1]  # the preamble is with its first chunk


def test_a_function_above_the_budget_is_cut_at_its_statements_and_is_not_whole() -> None:
    text = "int f() {\n" + "".join(f"  call{i}(1, 2, 3);\n" for i in range(50)) + "}\n"
    found = chunked(text, "c", 64)
    assert all(piece.endswith("\n") for _, piece in found)
    assert {chunk.kind for chunk, _ in found[1:]} == {"FUNC_BODY"} and not any(chunk.whole for chunk, _ in found)
    assert {chunk.depth for chunk, _ in found} == {1}


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("a.c", "int f(int);\n", "FUNC_SIGNATURE"),
        ("a.c", "typedef struct { int x; } point;\n", "TYPEDEF"),
        ("a.h", "#ifndef A_H\n#define A_H\nstruct point { int x; int y; };\n#endif\n", "CLASS_DECL"),
        ("a.c", "#include <stdio.h>\n", "PREAMBLE"),
        ("a.c", "// only words\n", "COMMENT"),
        ("a.c", "int table[] = {1, 2, 3};\n", "OTHER"),
        ("a.cc", "using ints = std::vector<int>;\n", "TYPEDEF"),
        ("a.cc", 'extern "C" {\nint f() { return 1; }\n}\n', "FUNC_BODY"),
        ("a.cc", "BEGIN_NAMESPACE\nnamespace a {\nint f() { return 1; }\n}\n", "NAMESPACE"),
        ("a.cc", "T& A::f() { return 1; }\n", "FUNC_BODY"),
        ("a.cc", "A::operator bool() const { return true; }\n", "FUNC_BODY"),
        ("a.cc", "TEST(A, B) { f(); }\n", "FUNC_BODY"),
        ("a.cc", "namespace a { int f() { return 1; } }\n", "NAMESPACE"),
        ("a.py", "import os\n\n@cached\ndef f():\n    return os.name\n", "FUNC_BODY"),
        ("a.py", "class A:\n    x = 1\n", "CLASS_DECL"),
        ("A.java", "package a;\nclass A { int x; int f() { return x; } }\n", "CLASS_DECL"),
        ("a.js", "import x from 'x';\nexport function f() { return x; }\n", "FUNC_BODY"),
        ("a.js", "const f = (a) => { return a + a + a; };\n", "FUNC_BODY"),
        ("a.ts", "export interface A { x: number }\n", "CLASS_DECL"),
        ("a.tsx", "type A = { x: number };\n", "TYPEDEF"),
        ("a.go", "package a\n\nfunc f() int { return 1 }\n", "FUNC_BODY"),
        ("a.rs", "use std::io;\n#[test]\nfn f() -> i32 { 1 }\n", "FUNC_BODY"),
        ("a.rs", "impl A { fn f(&self) -> i32 { 1 } }\n", "CLASS_DECL"),
        ("README.md", "# Words\n", "OTHER"),
    ],
)
def test_kinds(path: str, text: str, kind: str) -> None:
    [(chunk, _)] = chunked(text, language_of(path, text), 1000)
    assert chunk.kind == kind


def test_methods_of_a_class_above_the_budget_are_members_which_are_not_self_contained() -> None:
    methods = "".join(f"    int get{i}() {{\n        return {i} + {i};\n    }}\n\n" for i in range(20))
    found = chunked("class A {\n" + methods + "}\n", "java", 64)
    assert {chunk.kind for chunk, _ in found} == {"CLASS_MEMBER"} and "CLASS_MEMBER" not in SELF_CONTAINED
    assert all(piece.lstrip().startswith("int get") for _, piece in found[1:])


def test_text_that_does_not_parse_is_cut_at_braces_and_says_so() -> None:
    text = "".join(f"@@ $ f{i} ]] {{\n  ?? {i} ;;; ) (\n}}\n\n" for i in range(30))
    assert chunk_source(text, "java", count, 64).borders == BRACES
    assert all(piece.startswith("@@") for _, piece in chunked(text, "java", 64))
    assert chunk_source(CPP, "cpp", count, 64).borders == SYNTAX


MANY = scaled(20_000, 5_000)


@pytest.mark.parametrize("language", ["", "c", "python"])
@pytest.mark.parametrize(
    "text",
    [
        "{" * MANY,
        "{}\n" * (MANY // 2),
        "void f()" + "{" * MANY + "}" * MANY,
        "namespace a {\n" * (MANY // 4) + "}\n" * (MANY // 4),
        "int x = " + "(" * MANY + "1" + ")" * MANY + ";",
        "a<" * MANY,
        "\0" * (MANY // 4),
        "int a;\0\n" * (MANY // 4),
        "int f() {\r\n  return 1;\r\n}\r\n" * (MANY // 10),
        "\ufeffint f() { return 1; }\n" * (MANY // 10),
        "\n" * (2 * MANY),
        "x" * (2 * MANY),
        "😀Ω漢 " * (MANY // 2),
        " " * MANY + "{};" * (MANY // 2) + " " * MANY,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_text_keeps_the_promises(text: str, language: str) -> None:
    assert chunked(text, language, 64)


def test_nesting_is_followed_without_recursion_and_fills_its_chunks() -> None:
    text = "void f()" + "{" * (5 * MANY) + "}" * (5 * MANY)
    assert len(chunked(text, "c", 4096)) <= 2 * len(text) / 4096 + 2


def test_text_that_takes_too_much_to_parse_is_refused_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"a<" * 50_000
    assert parsing.parse(data, LANGUAGES["cpp"]) is None
    monkeypatch.setattr(parsing, "MAX_BYTES", 10)
    assert parsing.parse(b"int a = 1234;", LANGUAGES["c"]) is None


def test_work_grows_with_the_text() -> None:
    """Texts encoded for ten times the functions are ten times as many, whatever lies between."""

    def encoded(functions: int) -> int:
        total = 0

        def counting(texts: Sequence[str]) -> list[int]:
            nonlocal total
            total += sum(map(len, texts))
            return count(texts)

        chunk_source("int f() {\n  return 1 + 2 + 3;\n}\n\n" * functions, "c", counting, 100)
        return total

    assert encoded(2000) < 12 * encoded(200)


@pytest.mark.parametrize(
    ("budget", "language", "problem"),
    [
        (0, "c", "budget: 0 given"),
        (9, "cobol", "language: 'cobol' given"),
        (3, "", "less than the tokens of '漢'|'😀'"),
    ],
)
def test_what_cannot_be_is_said(budget: int, language: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        chunk_source("ab 😀😀😀", language, count_bytes, budget)


def test_lone_surrogates_are_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        chunk_source("int \ud800;", "c", count, 64)


def test_empty() -> None:
    assert chunk_source("", "c", count, 64).chunks == ()


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a/b.c", "", "c"),
        ("a.H", "struct a;", "c"),
        ("a.h", '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void);\n', "c"),
        ("a.h", "namespace a {}", "cpp"),
        ("a.h", "  template <class T> T f();", "cpp"),
        ("a.h", "std::string f();", "cpp"),
        ("a.CC", "", "cpp"),
        ("Makefile", "", ""),
        ("dir.c/README", "", ""),
    ],
)
def test_language_of(path: str, text: str, language: str) -> None:
    assert language_of(path, text) == language


OPENERS = (
    "int f() {\n",
    "class A {\n",
    "namespace b {\n",
    "template <",
    "def f():\n",
    "#if A\n",
    "/*",
    "// c\n",
    "{",
    "(",
)
FRAGMENTS = st.sampled_from(
    (*OPENERS, "}\n", "}", ";", "\n\n", "  x = y(1);\n", "*/", "#endif\n", '"', "\r\n", "\0", "é漢😀")
)


@given(
    st.lists(FRAGMENTS | st.text(st.characters(exclude_categories=("Cs",)), max_size=5), max_size=120).map("".join),
    st.sampled_from(["", *LANGUAGES]),
    st.integers(1, 80),
)
def test_any_text_in_any_language(text: str, language: str, budget: int) -> None:
    once = chunked(text, language, budget)
    assert once == chunked(text, language, budget)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=300), st.integers(4, 40))
def test_characters_of_several_tokens(text: str, budget: int) -> None:
    chunks = chunk_source(text, "cpp", count_bytes, budget).chunks
    pieces = [text[one.start : one.end] for one in chunks]
    assert "".join(pieces) == text and max(count_bytes(pieces), default=0) <= budget
