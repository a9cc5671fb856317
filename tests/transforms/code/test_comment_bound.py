"""The bound of comments is never below what the syntax tree says, so nothing is kept for not being parsed."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.code import code_heuristics
from refinery.transforms.code.code_heuristics import comment_share, judge_code, look_at
from refinery.transforms.code.code_rules import CodeHeuristicsParams
from refinery.transforms.code.comment_bound import comment_bound
from refinery.transforms.code.comments import SPACE, WIDE, comment_places
from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.code.parse import parse
from tests.beam import make_document
from tests.sampling import examples

PIECES = ["//", "/*", "*/", "/", "*", "#", "\\", "\\\\", "\n", "\r\n", "\r", " ", '"', "'", "`", "a", "int a;\n", "é"]
PIECES += ["<!--", "-->", '"""', 'r#"', "{", "}", "/**/", "/*/", "///", "//!", "/** a */", "#!/x\n", "f(a) {\n"]
PIECES += ["#if 0\n", "#endif\n", "\x0b", "\x0c", "\u2028", "\xa0", "\u3000", "\ufeff", "$", "%:", "??/\n"]


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=examples(600), deadline=None)
@given(text=st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_text_has_more_comments_than_the_bound(language: str, text: str) -> None:
    data = text.encode()
    parsed = parse(data, LANGUAGES[language])
    if parsed is None:
        return
    inside = sum(
        len(data[begin:end].translate(None, SPACE)) for begin, end in comment_places(data, parsed, LANGUAGES[language])
    )
    assert inside / max(1, len(data.translate(None, SPACE))) <= comment_bound(data, language)
    assert comment_share(look_at(text, language)) <= comment_bound(data, language)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=examples(300), deadline=None)
@given(text=st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_trees_with_wide_errors_have_the_same_comments(language: str, text: str) -> None:
    """A query is quadratic there, so they are walked."""
    data, grammar = text.encode(), LANGUAGES[language]
    parsed = parse(data, grammar)
    if parsed is not None:
        narrow, wide = replace(parsed, widest=0), replace(parsed, widest=WIDE)
        assert comment_places(data, narrow, grammar) == comment_places(data, wide, grammar)


@pytest.mark.parametrize("language", [name for name in LANGUAGES if LANGUAGES[name].line_comment == "//"])
@pytest.mark.parametrize("space", [" ", "\n\n", "\x0b", "\xa0", "\u2028", "\u3000", "\ufeff", " \u2028\t"])
def test_comments_begin_at_their_sign(language: str, space: str) -> None:
    """After an error, too: grammars of JavaScript have the white space in the comment there."""
    for before in ("a;", "*/", "}", "= ="):
        data = f"{before}{space}// b\n".encode()
        parsed = parse(data, LANGUAGES[language])
        assert parsed is not None
        places = comment_places(data, parsed, LANGUAGES[language])
        assert {data[begin:end].rstrip() for begin, end in places} <= {b"// b"}


def test_the_widest_error_is_counted() -> None:
    parsed = [
        parse(text, LANGUAGES["cpp"]) for text in (b"&" * 5000, b"int a;\n" * 5000, b"int f() {" + b"&" * 9000 + b"}")
    ]
    assert [each is not None and each.widest >= WIDE for each in parsed] == [True, False, True]


def test_measures() -> None:
    assert comment_bound(b"", "c") == 0 and comment_bound(b"int a; // b", "c") == 3 / 8
    assert comment_bound(b"a /* b */ c", "java") == 5 / 7 and comment_bound(b"a /* b", "java") == 3 / 4
    assert comment_bound(b"// a \\\n b\nc", "cpp") == 5 / 6 and comment_bound(b"a # b\nc", "python") == 2 / 4
    assert comment_bound(b"a /* /* */ b */ c", "rust") == 10 / 11 and comment_bound(b"a", "") == 1
    assert all(one.line_comment for one in LANGUAGES.values())


def test_what_cannot_be_dropped_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(code_heuristics, "look_at", lambda text, language: asked.append(text))
    code = "".join(f"int sum{i}(int a) {{ return a; }}  // {i}\n" for i in range(9))
    texts = [code, code + "// DO NOT EDIT BY HAND\n", "".join(f"// Line {i} of a text.\n" for i in range(9))]
    for text in texts:
        judge_code(make_document(text, meta={"path": "a.c"}), CodeHeuristicsParams())
    assert asked == texts[1:]
