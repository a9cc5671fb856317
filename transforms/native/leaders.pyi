from typing_extensions import Buffer

def link(sketches: Buffer, starts: Buffer, permutations: int, minimum: int, always: int) -> bytes: ...
def assign(
    signatures: Buffer,
    starts: Buffer,
    permutations: int,
    minimum: int,
    always: int,
    leader: Buffer,
    matches: Buffer,
) -> None: ...
