from collections.abc import Sequence

from typing_extensions import Buffer

def signatures(
    texts: Sequence[str], table: Buffer, ngram: int, characters: bool, a: Buffer, b: Buffer, out: Buffer
) -> None: ...
def shingles(text: str, table: Buffer, ngram: int, characters: bool) -> bytes: ...
