"""Cards of strangers: what names files is read, and nothing that they hold takes long or much memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.data_text.plain_yaml import MAX_YAML_VALUES
from refinery.transforms.read.remote import hub_card
from refinery.transforms.read.remote.hub_card import choose_config, configs_of, configs_text, patterns_of

CONFIGS = """configs:
- config_name: default
  data_files:
  - split: train
    path: "data/*/*.parquet"
- config_name: sample
  default: true
  data_files: {train: [a.jsonl, b.jsonl], test: c.jsonl}
"""
FEATURES = """dataset_info:
  features:
    label: {names: {0: neg, 1: pos}}
size_categories:
- n<1K
"""


def card(front: str, text: str = "# Title\n---\nconfigs: no\n") -> bytes:
    return f"---\n{front}---\n{text}".encode()


@pytest.mark.parametrize(
    "given",
    [
        card(CONFIGS),
        card(FEATURES + CONFIGS),  # keys that are numbers are in no part that is read
        card(CONFIGS + "license: mit\n" + FEATURES),
        card("license: &a mit\ntags: [*b, {]\n" + CONFIGS),  # nor is what is broken elsewhere
        b"\xef\xbb\xbf" + card(CONFIGS).replace(b"\n", b"\r\n"),
        card(CONFIGS.replace("configs:", '"configs" :')),
        card(CONFIGS.replace("\n", "\n# note\n")),
        card(CONFIGS, "x" * (2 << 20)),
        card(CONFIGS).removesuffix(b"# Title\n---\nconfigs: no\n"),
    ],
)
def test_the_part_that_names_files_is_found(given: bytes) -> None:
    configs = configs_of(given, "org/set")
    assert [each["config_name"] for each in configs] == ["default", "sample"]
    assert patterns_of("org/set", configs[0], "train") == ["data/*/*.parquet"]
    chosen = choose_config("org/set", configs, "")
    assert patterns_of("org/set", chosen, "*") == ["a.jsonl", "b.jsonl", "c.jsonl"]


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"# Title\nconfigs:\n- config_name: x\n",
        card("license: mit\n"),
        card(CONFIGS, "").removesuffix(b"---\n"),  # no end
        card("x: |\n  configs:\n"),
        card("configs: 7\n"),
        card("configs: [a, 3]\n"),
        card("configs:\n"),
        b"---" + b"\n" * 60_000,
        b"---\n" + b"a:\n" * 400_000 + CONFIGS.encode() + b"---\n" + b"x" * (1 << 20),  # behind the first megabyte
    ],
)
def test_a_card_without_them_has_none(given: bytes) -> None:
    assert configs_of(given, "org/set") == []


ALIASES = "configs:\n- &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (ALIASES, f"more than {MAX_YAML_VALUES} values, aliases expanded"),
        ("configs: " + "[" * 50_000 + "\n", "nested deeper than 50"),
        ("configs: !!python/object:os.system x\n", "tag .* given, none is allowed"),
        ("configs: {a: [\n", "expected"),
        ("configs: \x1b[2J\n", "special characters are not allowed"),
    ],
)
def test_what_cannot_be_read_is_one_line(front: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        configs_of(card(front), "org/set")
    message = str(caught.value)
    assert message.startswith("the card of org/set") and message.endswith("; name the files of org/set themselves")
    assert message.isprintable() and len(message) < 400


def test_names_of_strangers_are_escaped_and_cut() -> None:
    configs = [{"config_name": "\x1b[2J" + "x" * 1000, "data_files": {"\x1b[2J": "a"}}] * 40
    for call in (lambda: choose_config("a/b", configs, "c"), lambda: patterns_of("a/b", configs[0], "train")):
        with pytest.raises(ValueError, match="given, a/b has") as caught:
            call()
        assert str(caught.value).isprintable() and len(str(caught.value)) < 1500


def test_a_card_of_too_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_card, "MAX_PATTERNS", 3)
    with pytest.raises(ValueError, match="the card of a/b names 4 files and patterns; give the files themselves"):
        patterns_of("a/b", {"data_files": ["a", "b", "c", "d"]}, "train")


@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_any_data_names_files_or_none(data: object) -> None:
    try:
        found = patterns_of("a/b", {"data_files": data, "data_dir": data}, "*")
    except ValueError as error:
        assert "has " in str(error)
        return
    assert all(isinstance(path, str) for path in found)


@given(st.text(alphabet="-\nac: configs", max_size=60))
def test_any_text_has_a_front_matter_or_none(text: str) -> None:
    found = configs_text("---\n" + text)
    assert set(found.splitlines()) <= set(text.splitlines())
