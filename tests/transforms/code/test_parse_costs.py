"""What a repeated piece of source costs, in every grammar: work and memory stay below bounds that are counts.

Each unit was found to be slow, deep or large for some grammar, or is one that might be. test-all runs all of them, at
the full size; a commit runs a sample, at a size at which the worst of them took seconds before memory was counted.
"""

import pytest

from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.code.parser_frames import COMMENTS, CONSTRUCTS, UNITS
from refinery.transforms.code.parser_process import PARSER, ParserProcess
from refinery.transforms.native import meter
from tests.sampling import sampled, scaled

REPEATED = """
{ ( [ < {a: {a:{b1: [a, a, a:: ::a a.b( a(b, a[b, a< a<a< <a> </a> <a·b=" if(a)
while(a) for(;;) switch(a){case·0: case·0:
class·A{ struct{ fn·a(){ func( def·a(b= lambda: match·a{b=> impl<T>·
template< operator· namespace·a{ {} () } ) ] (* a?b:
a?. a! a= a+ a&& a=> (a)=> a; a·b; int·a[ ! - * & | ~ ^ % $ / ? @a· .. -> a:b: "a"+ "a"· " ' ` `${ \"\"\" r" R"( f"{ /*a
/**/ //a¶ #if·A¶ #define·A¶ if·a:¶ ¶· a¶·b¶ else· try{ do· new· not· return· typeof· await· async· import·a; package·
using· x·y· 0x 1. \\ é ¶ →
"""
ESCAPES = {"·": " ", "¶": "\n", "→": "\t", '\\"': '"'}
SIZE = scaled(900_000, 8_000)
DEEP = scaled(250_000, 100_000)
FULL_MEMORY = 800 << 20  # bytes that the process has in use at most, at the full size


def unescaped(unit: str) -> str:
    for mark, meant in ESCAPES.items():
        unit = unit.replace(mark, meant)
    return unit


UNITS_OF_SOURCE = [unescaped(unit) for unit in REPEATED.split()]
CELLS = [(language, unit) for unit in UNITS_OF_SOURCE for language in LANGUAGES]


def test_the_scan_has_many_units() -> None:
    assert len(set(UNITS_OF_SOURCE)) == len(UNITS_OF_SOURCE) >= 90


def repeated(unit: str, size: int = SIZE) -> bytes:
    return (unit * (size // len(unit.encode()) + 1)).encode()


@pytest.mark.parametrize(("language", "unit"), sampled("repeated units of source", CELLS, 60, lambda cell: cell))
def test_a_repeated_unit_is_parsed_within_bounds_or_refused(language: str, unit: str) -> None:
    answers = [PARSER.ask(question, language, repeated(unit)) for question in (COMMENTS, UNITS, CONSTRUCTS)]
    assert answers[0] is not None or answers == [None, None, None]
    assert peak_memory() < FULL_MEMORY


def peak_memory() -> int:
    """Bytes that the parser's process has had in use; 0 where it has just ended itself."""
    if PARSER._process is None:
        return 0
    with open(f"/proc/{PARSER._process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


@pytest.mark.parametrize(
    ("language", "unit"), [("rust", "a,"), ("java", "template<"), ("c", "a=>"), ("python", "/*a"), ("cpp", "a<")]
)
def test_what_known_units_take_is_refused_however_often_it_is_asked(language: str, unit: str) -> None:
    """By counts, one of them by the end of the process: not by what the process did before, nor by a clock."""
    other = ParserProcess()
    assert PARSER.ask(UNITS, language, repeated(unit, 100_000)) is None
    assert other.ask(UNITS, language, repeated(unit, 100_000)) is None
    assert PARSER.ask(COMMENTS, "c", b"int a; // b\n") is not None
    other.end()


def test_nesting_that_recurses_in_c_is_answered() -> None:
    """With eight megabytes of stack, as threads have them, the parser died of it."""
    for language in ("javascript", "tsx", "typescript"):
        PARSER.ask(UNITS, language, b"{a:" * DEEP)


def test_counts_are_the_same_each_time() -> None:
    made = []

    source = b"int f(int a) { return a + 1; } /* \xc3\xa9 */ }\n" * 300
    for _ in range(3):
        counting = meter.Meter(source, 512, 10**9, 10**9, 10**12)
        LANGUAGES["cpp"].parser().parse(counting.read, progress_callback=counting.is_too_much)
        made.append(counting.taken)
    assert made[0] == made[1] == made[2] > len(source)


@pytest.mark.parametrize("text", ["😀Ω漢 ", "é", "a漢", "😀"])
def test_no_block_ends_inside_a_character(text: str) -> None:
    """The lexer asks for the rest of one, and dies where a limit gives it none."""
    data = (text * 700).encode()
    for block in (4, 5, 7, 512):
        counting = meter.Meter(data, block, 10**9, 10**9, 10**12)
        found, offset = "", 0
        while given := counting.read(offset, None):
            found += given.decode()
            offset += len(given)
        assert found == text * 700
    for reads in range(40):
        counting = meter.Meter(data, 512, 10**9, reads, 10**12)
        try:
            LANGUAGES["c"].parser().parse(counting.read, progress_callback=counting.is_too_much)
        except ValueError:
            assert counting.is_over


def test_a_meter_counts_reads_and_calls_and_memory() -> None:
    assert meter.Meter(b"a" * 9, 4, 0, 2, 10**9).read(8, None) == b"a"
    spent = meter.Meter(b"a" * 9, 4, 1, 1, 10**9)
    assert (spent.read(0, None), spent.read(0, None), spent.is_over) == (b"aaaa", b"", True)
    called = meter.Meter(b"", 4, 1, 1, 10**9)
    assert [called.is_too_much(0, False) for _ in range(2)] == [False, True]
    small = meter.Meter(b"", 4, 9, 9, 1)
    kept = [bytearray(i) for i in range(1, 99)] + [[*range(99)]]
    assert len(kept) == 99 and small.is_over and small.taken > 1
    for wrong in ((b"", 3, 1, 1, 1), (b"", 4, -1, 1, 1), (b"", 4, 1, -1, 1), (b"", 4, 1, 1, -1)):
        with pytest.raises(ValueError, match="given"):
            meter.Meter(*wrong)
    with pytest.raises(ValueError, match="offset"):
        small.read(-1, None)
    for pair in ((0, 1), (1, 0), (1, 126)):
        with pytest.raises(ValueError, match="given"):
            meter.end_process(*pair)


def test_what_comes_after_a_parse_is_not_counted() -> None:
    """A tree holds its meter. What is done with the tree, and for the first time in a process, takes memory, too."""
    for language in LANGUAGES:
        new = ParserProcess()
        found = new.ask(COMMENTS, language, b"a\n")
        assert found is not None and found == PARSER.ask(COMMENTS, language, b"a\n")
        new.end()
