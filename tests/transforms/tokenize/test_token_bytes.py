"""The bytes of all tokens at once are those of each."""

import pytest

from refinery.transforms.tokenize.byte_level_bpe import all_token_bytes, byte_alphabet, token_bytes


@pytest.mark.parametrize(
    "tokens",
    [[], [""], list(byte_alphabet()), ["the", "", "Ġcat", "âĤ¬"], ["Ġcat", "猫", "the"], [" ", "\xad", "Ġ"]],
    ids=["none", "empty", "alphabet", "in the alphabet", "beyond it", "below 256, not in it"],
)
def test_all_token_bytes(tokens: list[str]) -> None:
    assert list(all_token_bytes(tokens)) == [token_bytes(token) for token in tokens]
