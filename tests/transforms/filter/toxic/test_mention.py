import pytest

from refinery.transforms.filter.toxic.lexicon import find_hits, make_lexicon
from refinery.transforms.filter.toxic.mention import find_mentions
from tests.growth import is_linear
from tests.sampling import one_commit_in_four

LEXICON = make_lexicon([("darn", 1.0)])


def mentions(text: str, language: str = "en") -> list[bool]:
    folded = text.casefold()
    return find_mentions(folded, find_hits(folded, LEXICON), language)


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ('He: "darn it", then darn', [True, False]),
        ("“darn” «darn» „darn“ »darn« ‘don’t darn’ 'don't darn'", [True] * 6),
        ("「darn」darn", [True, False]),
        ('a " stray mark\ndarn "', [False]),
        ("> darn\ndarn", [True, False]),
        ("They called me darn. Darn!", [True, False]),
        ("Stop calling people darn", [True]),
        ("I call you darn", [False]),
        ("I've said darn, we say darn", [False, False]),
        ("dogs' darn cats' darn", [False, False]),
        ("", []),
    ],
)
def test_mentions(text: str, mentioned: list[bool]) -> None:
    assert mentions(text) == mentioned


def test_other_languages() -> None:
    assert mentions("Er nannte mich darn", "de") == [True]
    assert mentions("Ich sagte darn", "de") == [False]
    assert mentions("they said darn", "fi") == [True]


@one_commit_in_four
@pytest.mark.parametrize("piece", ['" darn\n', "“darn", "„ darn ", "'darn ", "«»darn", "> darn", "said darn "])
def test_hostile_text_is_linear(piece: str) -> None:
    assert is_linear(lambda count: mentions(piece * count), 500, slack=0.05)
