"""Which constructs of a source file may be compared alone, and what goes where one is cut out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.code.constructs import whole_constructs
from refinery.transforms.code.languages import LANGUAGES
from tests.sampling import examples

FILES = [
    (
        "cpp",
        """// Licence.

#ifndef A_H
#include <a>
namespace a {
enum class E;
inline namespace v1 {

// Adds.
// Twice.
template <typename T>
T add(T x) {
  return x + x;
}

// Alone.

class A : public B {
 public:
  int member() { return 1; }  // never alone
};
}  // namespace v1
int f(int);
int g;
using T = std::vector<int>; int h() { return 1; }
}
extern "C" {
struct S { int a; };
}
extern "C" int k() { return 0; }
#endif
""",
        [
            "enum class E;\n",
            "// Adds.\n// Twice.\ntemplate <typename T>\nT add(T x) {\n  return x + x;\n}\n",
            "class A : public B {\n public:\n  int member() { return 1; }  // never alone\n};\n",
            "using T = std::vector<int>;",
            "int h() { return 1; }",
            "struct S { int a; };\n",
            'extern "C" int k() { return 0; }\n',
        ],
    ),
    ("c", "typedef struct { int a; } é;\r\nint é(void) { return 1; } int b;", ["typedef struct { int a; } é;\r\n",
     "int é(void) { return 1; }"]),
    ("cpp", "class A : public {\n int a() { return 1; }\n int b() { return 2; }\n};\nint f( { }\nint g() { }", []),
    ("python", "import a\n\n# One.\n@b\ndef f():\n    return 1\n\nclass A:\n    def g(self): pass\nx = 1",
     ["# One.\n@b\ndef f():\n    return 1\n", "class A:\n    def g(self): pass\n"]),
    ("java", "package a;\n/** A. */\nclass A { int f() { return 1; } }\n",
     ["/** A. */\nclass A { int f() { return 1; } }\n"]),
    ("javascript", "import a from 'b';\nexport function f() { return 1; }\nconst g = () => { h(); };\nf();",
     ["export function f() { return 1; }\n", "const g = () => { h(); };\n"]),
    ("typescript", "namespace N { interface I { a: number }\n}\n", ["interface I { a: number }"]),
    ("go", "package a\n\n// F does.\nfunc (t T) F() int { return 1 }\ntype T struct{}\n",
     ["// F does.\nfunc (t T) F() int { return 1 }\n", "type T struct{}\n"]),
    ("rust", "use a;\n#[inline]\nfn f() -> i32 { 1 }\nmod m { struct S; }\nimpl S { fn g() {} }\n",
     ["#[inline]\nfn f() -> i32 { 1 }\n", "struct S;", "impl S { fn g() {} }\n"]),
    ("", "int f() { return 1; }", []),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "expected"), FILES)
def test_what_goes_where_a_construct_is_cut_out(language: str, text: str, expected: list[str]) -> None:
    assert [text[found.begin : found.stop] for found in whole_constructs(text, language)] == expected


def test_comments_above_are_no_part_of_what_is_compared() -> None:
    (found,) = whole_constructs("// A.\nint f() { return 1; }\n", "c")
    assert "// A.\nint f() { return 1; }\n"[found.start : found.end] == "int f() { return 1; }"


def test_a_head_left_behind_a_macro_is_no_construct() -> None:
    text = "int f() const\n    LOCKED_BY(m) {\n  return 1;\n}\nint g() { return 1; }\n"
    assert all("LOCKED_BY" not in text[found.start : found.end] for found in whole_constructs(text, "cpp"))


PIECES = st.sampled_from(
    [*"{}();<>=*é\ud800\n ", "int f() ", "{ return 1; }", "class A ", "namespace a ", "// c\n", "#if A\n", "#endif\n",
     'extern "C" ']
)  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from(sorted(LANGUAGES)))
def test_constructs_of_any_text_ascend_inside_it(text: str, language: str) -> None:
    last = 0
    for begin, start, end, stop in whole_constructs(text, language):
        assert last <= begin <= start < end <= stop <= len(text)
        last = stop


def test_deep_nesting_and_many_siblings_cost_one_parse() -> None:
    assert whole_constructs("namespace a {" * 3000 + "}" * 3000, "cpp") == []
    assert len(whole_constructs("int f() { return 1; }\n" * 3000, "c")) == 3000
    line = whole_constructs("int f() { return 1; } " * 3000, "c")
    assert len(line) == 3000 and line[1].begin == line[1].start
    assert whole_constructs("\n" + " " * 1000 + "int f() { return 1; }\n", "c")[0].begin == 1001
