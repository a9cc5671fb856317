"""What is part of a line: elements that run on, what is not for the eye, spaces that stay, short codes that go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.blocks.page import Column, parse_page
from tests.transforms.extract.blocks.test_structure import blocks

INLINE = ["custom-tooltip", "g-emoji", "relative-time", "button", "label", "object", "noscript"]
REPLACED = ["iframe", "video", "audio", "select", "textarea", "datalist", "canvas"]
CONTAINERS = {
    "p": "<p>{}</p>",
    "heading": "<h2>{}</h2>",
    "cell": "<table><tr><td>{}</td></tr></table>",
    "caption": "<table><caption>{}</caption></table>",
    "pre": "<pre>{}</pre>",
    "line of code": "<pre><code><div>{}</div></code></pre>",
    "bold in p": "<p><b>{}</b></p>",
    "div": "<div>{}</div>",
    "item": "<ul><li>{}</li></ul>",
    "quotation": "<blockquote>{}</blockquote>",
    "term": "<dl><dt>{}</dt></dl>",
    "body": "{}",
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_sentence_runs_on(container: str) -> None:
    around = CONTAINERS[container]
    for name in INLINE:
        html = around.format(f"We say <{name} class=x>this word</{name}>, and go on.")
        assert blocks(html) == ["We say this word, and go on."], name
        html = around.format(f"We say <b>it</b> <{name.upper()}>aloud</{name.upper()}>")
        assert blocks(html) == ["We say it aloud"], name
        html = around.format(f"<{name}>Here</{name}><!-- --> it begins")
        assert blocks(html) == ["Here it begins"], name
    for name in REPLACED:
        assert blocks(around.format(f"A film <{name} x=y></{name}>is shown.")) == ["A film is shown."], name


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        # Where no text touches them, components are boxes, and so are buttons and labels in rows.
        ("<x-page><x-para>1.</x-para><x-para>2.</x-para>\n<x-para>3.</x-para></x-page>", ["1.", "2.", "3."]),
        ("<div><a href=u>Title</a><button>Buy</button></div>", ["Title", "Buy"]),
        ("<form><label>Name</label><input><label>Street</label><input></form>", ["Name", "Street"]),
        ("<div><button>One</button><button>Two</button></div>", ["One", "Two"]),
        ("<p><button>One</button><button>Two</button></p>", ["One Two"]),
        ("<p>choose <select><option>a<option>b</select> here", ["choose here"]),
        ("<p>a <x-y>b <p>c</x-y>d", ["a b", "cd"]),  # the standard: <p> ends <p>, and with it <x-y>,
        ("<marquee>news</marquee>text", ["news", "text"]),
        # Elements with no space between them are two things; letters that are elements of their own are one word.
        ("<p><span>Часы</span><span>работы</span>", ["Часы работы"]),
        ("<p><span>they said.</span><span>It left</span>", ["they said. It left"]),
        ("<p><span>U.</span><span>S.</span> <code><span>a</span><span>b</span></code>", ["U.S. ab"]),
        ("<pre><span>10</span><span>px</span></pre>", ["10px"]),
        ("<h2><span>S</span><span>t</span><span>o</span><span>p</span></h2>", ["Stop"]),
        ("<p><a href=1>1</a><a href=2>2</a>", ["1 2"]),
        # Line ends between wide characters are no spaces (CSS Text 3, 4.1.3).
        ("<p>今日は、\n 散歩に\n行く and\nso 한국\n어", ["今日は、散歩に行く and so 한국 어"]),
    ],
)
def test_blocks_and_borders(html: str, expected: list[str]) -> None:
    assert blocks(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><ruby><rb aria-hidden=true>竹取</rb><rt>たけとり</rt></ruby>の翁", ["竹取の翁"]),
        ("<p><ruby>漢<rt>かん<rb>字<rt>じ</ruby>だ", ["漢字だ"]),
        ("<p><ruby>東<rtc>とう</rtc></ruby>へ", ["東へ"]),
        ("<p><span aria-hidden=true>T</span>he ship", ["The ship"]),
        ("<p>a share of <span aria-hidden=true>3/4</span> of it", ["a share of 3/4 of it"]),
        ("<p>read the <a href=x aria-hidden=true>log</a> first", ["read the log first"]),
        ("<pre><span aria-hidden=true>$ </span>make</pre>", ["$ make"]),
        ("<p aria-hidden=true>Seen by all.", ["Seen by all."]),
        # Said twice: for the eye and for the ear, on either side, or in the same words.
        ("<p><span aria-hidden=true>$12</span><span class=sr-only>twelve dollars</span> each", ["twelve dollars each"]),
        ("<p><span class=a-offscreen>$12</span> <span aria-hidden=true><i>$</i>12</span> each", ["$12 each"]),
        ("<p><i class='visuallyHidden'>T</i><b aria-hidden=true>T</b>he", ["The"]),
        ("<a href=x><span>Shop</span><span aria-hidden=true>Shop</span></a>", ["Shop"]),
        ("<a href=x><span aria-hidden=true><b>Shop</b></span><span>Shop</span></a>", ["Shop"]),
        ("<p>no <b aria-hidden=true>no</b> no", ["no no no"]),
        # Signs beside headings, ligatures of icon fonts, tooltips.
        ("<h2>Days<a class=anchor aria-hidden=true href=#x>#</a></h2>", ["Days"]),
        ("<h2>Days <a href=#x>¶</a></h2><p>one<a href=#f>*</a>", ["Days", "one*"]),
        ("<h2><a href=#x>#1</a> Days</h2>", ["#1 Days"]),
        ("<p>go <span class='material-icons md'>arrow_forward</span> on", ["go on"]),
        ("<p>a <dfn>word<span role=tooltip>no</span></dfn>", ["a word"]),
    ],
)
def test_what_is_hidden_from_ears_is_seen(html: str, expected: list[str]) -> None:
    assert blocks(html) == expected


@pytest.mark.parametrize(
    ("style", "seen"),
    [
        ("display :none", False),
        ("DISPLAY:NONE", False),
        ("color:red;;display: none !important", False),
        ("display:none!IMPORTANT;display:inline", False),
        ("/* a */display/**/:/* b */none/**/", False),
        ("background:url(a;b);display:none", False),
        ("content:'a;\\'b';display:none", False),
        ("\tdisplay\n:\nnone\n;", False),
        ("display:inline;display:none", False),
        ("display:none;display:nonsense", False),
        ("visibility: Hidden", False),
        ("display:none;display:inline", True),
        ("--x-display:none", True),
        ("--display:none", True),
        ("x-display:none", True),
        ("display:'none'", True),
        ("display:none none", True),
        ("display:none(1)", True),
        ("display none", True),
        ("content:'display:none'", True),
        ("background:url(;display:none;)", True),
        ("x{display:none;}", True),
        ("/*display:none*/", True),
        ("/*display:none", True),
        ("display:none !importan", True),
        ("visibility:hidden;visibility:visible", True),
        ("", True),
    ],
)
def test_styles_are_read_as_css_reads_them(style: str, seen: bool) -> None:
    assert blocks(f'<p>a <span style="{style}">b</span> c') == ["a b c" if seen else "a c"]


KEYWORDS = ["none", "inline", "block", "nonsense", "inline-block", "contents"]
NAMES = ["display", "--display", "color"]
DECLARATIONS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KEYWORDS), st.booleans()))
SPACE = st.sampled_from(["", " ", "\n\t", "/* ; */", "/**/ "])


@given(DECLARATIONS, st.data())
def test_the_last_weightiest_declaration_counts(declared: list[tuple[str, str, bool]], data: st.DataObject) -> None:
    def spelled(word: str) -> str:
        return data.draw(SPACE) + data.draw(st.sampled_from([word, word.upper(), word.title()])) + data.draw(SPACE)

    style = ";".join(
        f"{spelled(name)}:{spelled(value)}" + (f"!{spelled('important')}" if weighs else "")
        for name, value, weighs in declared
    )
    valid = [(weighs, value) for name, value, weighs in declared if name == "display" and value != "nonsense"]
    heavy = [value for weighs, value in valid if weighs]
    shown = (heavy or [value for _, value in valid] or ["inline"])[-1]
    expected = {"none": ["a c"], "block": ["a", "b", "c"]}.get(shown, ["a b c"])
    assert blocks(f'<p>a <span style="{style}">b</span> c') == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<span style='display:block'>One.</span><span style='display: flex'>Two.</span>", ["One.", "Two."]),
        ("<div style='display:inline'>The</div> <div style='display:contents'>ship", ["The ship"]),
        ("<p>a <b style='display:inline-block'>b</b> c", ["a b c"]),
        ("<h2>a <div style='display: inline-block'>word</div></h2>", ["a word"]),
        ("<p>a <span hidden>b</span><i hidden=until-found>c</i>", ["a c"]),
        ("<p>a <span hidden style='display:inline'>b</span>", ["a b"]),
        # Spaces.
        ("<p>if x:<br>&nbsp;&nbsp;&nbsp;&nbsp;y()<br>z", ["if x:\n    y()\nz"]),
        ("<code>if x:<br>\n &nbsp; &nbsp;<b>y()</b></code>", ["if x:\n   y()"]),
        ("<p>a<br>&emsp;b<br>\n   c<br><br>&nbsp;&nbsp;d<p>&nbsp;e", ["a\n b\nc", "  d", "e"]),
        ("<div style='white-space: pre'>a\n   b  c</div>\n d", ["a\n   b  c", "d"]),
        ("<p><span style='white-space:PRE-WRAP'>a\n  b</span>\n  c", ["a\n  b c"]),
        ("<div style='white-space:pre-line'>a \n  b   c</div>", ["a\nb c"]),
        ("<pre style='white-space:normal'>a\n  b</pre>", ["a b"]),
        ("<pre>\n&nbsp;&nbsp;a\n\tb</pre>", ["  a\n\tb"]),
        ("<pre>a<br>  b</pre>", ["a\n  b"]),
    ],
)
def test_boxes_and_spaces_by_style(html: str, expected: list[str]) -> None:
    assert blocks(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('[vc_row][vc_column width="1/2"]Words.[/vc_column][/vc_row]', ["Words."]),
        ("<p>[et_pb_section fb_built=″1″ x=″a″]Words[/et_pb_section]", ["Words"]),
        ("<p>[vc_row css=&#8221;.a{b:c}&#8221;]Words", ["Words"]),
        ("[caption id='a' width='3']<img>The cap[/caption] on", ["The cap on"]),
        ('a [contact-form-7 id="12" title="Contact form"] b[gallery ids="1,2" /]', ["a b"]),
        ("<p>[vc_empty_space]</p><p>x", ["x"]),
        ('<p>Use <code>[vc_row a="b"]</code></p><pre>[x y="1"]</pre>', ['Use [vc_row a="b"]', '[x y="1"]']),
        *(
            (text, [text])
            for text in (
                "He [sic] said [1] [a=1] a[i] [TODO: x] [error code=5]",
                '[quote="Ann"]q[/quote] [b]x[/b] [url=http://x.org]y[/url]',
                "[link](http://x.org) [x_1] [/etc] [my_section] [ab",
                "[note a=b c='d']",
                '[word x="y" [z]',
                "[",
            )
        ),
    ],
)
def test_short_codes_go(html: str, expected: list[str]) -> None:
    assert blocks(html) == expected


@pytest.mark.parametrize(
    ("text", "words", "sentences", "digits"),
    [
        ("Two words. And three more.", 5, 2, 0),
        ("Два слова. И ещё три.", 5, 2, 0),
        ("१२ मई को। और फिर", 5, 1, 2),
        ("١٢:٤٥ خبر؟ نعم.", 3, 2, 4),
        ("今日は天気がいい。散歩に行く！", 9, 2, 0),
        ("１２時４５分。", 3, 1, 4),
        ("ខ្មែរ។", 1, 1, 0),
        ("ข" * 60 + " " + "ก" * 10, 14, 1, 0),
        ("いい。　いい。", 3, 2, 0),
    ],
)
def test_scripts_are_counted_alike(text: str, words: int, sentences: int, digits: int) -> None:
    block = parse_page(f"<p>{text}", "").blocks[0].tolist()
    assert [block[Column.WORDS], block[Column.SENTENCES], block[9]] == [words, sentences, digits]


def test_titles_are_known_in_any_alphabet() -> None:
    page = parse_page("<title>НОВОСТИ ДНЯ</title><h1>Новости дня</h1><p>ΝΕΑ", "")
    assert page.blocks[0][Column.WHOLE] == page.arrays.titles.astype("int32")[0]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a('</scripts>');", ["a", "b"]),
        ("<!-- a('<script>x</script>'); -->", ["a", "b"]),
        ("<!--> a('<script>b</script>c", ["ac", "b"]),
        ("<!---> <script>b</script>c", ["ac", "b"]),
        ("<!-- <script> --> </script>c", ["ac", "b"]),
        ("<!-- <SCRIPT/> </script >", ["a", "b"]),
        ("<!-- <script> ", ["a"]),
        ("<!-- <scripts> ", ["a", "b"]),
    ],
)
def test_scripts_end_where_the_standard_has_it(script: str, expected: list[str]) -> None:
    assert blocks(f"<p>a<script>{script}</script><p>b") == expected
