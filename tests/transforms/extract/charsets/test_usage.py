"""Every candidate is some language's encoding, and every language has one."""

from refinery.transforms.extract.charsets.guess import CANDIDATES
from refinery.transforms.extract.charsets.letters import LANGUAGES, UNIT
from refinery.transforms.extract.charsets.usage import PRIOR, UNUSUAL, usage


def test_each_language_has_an_encoding_and_each_encoding_a_language() -> None:
    anywhere = {"eng", "ind", "lat", "swa"}
    usual = {
        (name, language)
        for name in CANDIDATES
        for language, found in zip(LANGUAGES, usage(name).tolist(), strict=True)
        if found == UNIT * PRIOR.get(name, 0) and name != "utf-8" and language not in anywhere
    }
    assert {name for name, _ in usual} == set(CANDIDATES) - {"utf-8"}
    assert {language for _, language in usual} == set(LANGUAGES) - anywhere
    assert set(PRIOR) <= set(CANDIDATES)


def test_usage_adds_what_is_unusual_to_the_rank() -> None:
    found = dict(zip(LANGUAGES, usage("koi8-r").tolist(), strict=True))
    assert (found["rus"], found["ukr"], found["eng"]) == (-UNIT, -UNIT - UNUSUAL, -UNIT)
    assert not usage("utf-8").any()
