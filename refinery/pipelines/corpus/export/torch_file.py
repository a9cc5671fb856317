"""PyTorch's file format for one tensor of token ids, without PyTorch: what `torch.load(path, weights_only=True)` reads.

A zip archive without compression: `data.pkl` is a pickle that calls for a tensor over storage "0", `data/0` its bytes,
64-byte aligned as torch.save aligns them. The same tokens give the same bytes everywhere.
"""

import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError

ROOT = "tokens"  # the archive's one folder; any name will do
ALIGNMENT = 64
LOCAL_HEADER = 30  # bytes of a zip entry before its name
STORAGES = {"int64": b"LongStorage", "int32": b"IntStorage"}
MOST_TOKENS = 2**31 - 1  # the pickle holds the count in four bytes


class TorchFile(NamedTuple):
    """Where the tensor's bytes are: `tokens` little-endian integers of `dtype` from byte `offset`."""

    tokens: int
    dtype: str
    offset: int


def tensor_pickle(tokens: int, dtype: str) -> bytes:
    """The pickle of a one-dimensional tensor of `tokens` elements over storage "0", protocol 2 as torch.save writes.

    Raises ValueError for a dtype that is not in STORAGES, and for more than 2**31 - 1 tokens.
    """
    if dtype not in STORAGES:
        raise ValueError(f"dtype: {dtype!r} given, {' or '.join(STORAGES)} is allowed")
    if not 0 <= tokens <= MOST_TOKENS:
        raise ValueError(f"tokens: {tokens} given, 0 to {MOST_TOKENS} is allowed")
    count = pickle.BININT + struct.pack("<i", tokens)
    one = pickle.BININT1 + b"\x01"
    storage = b"".join(
        [pickle.MARK, _text(b"storage"), _name(b"torch", STORAGES[dtype]), _text(b"0"), _text(b"cpu"), count]
    )
    return b"".join(
        [
            pickle.PROTO + b"\x02",
            _name(b"torch._utils", b"_rebuild_tensor_v2"),
            pickle.MARK,
            storage + pickle.TUPLE + pickle.BINPERSID,
            pickle.BININT1 + b"\x00",  # offset in the storage
            count + pickle.TUPLE1,  # shape
            one + pickle.TUPLE1,  # strides
            pickle.NEWFALSE,  # requires_grad
            _name(b"collections", b"OrderedDict") + pickle.EMPTY_TUPLE + pickle.REDUCE,  # backward hooks
            pickle.TUPLE + pickle.REDUCE + pickle.STOP,
        ]
    )


def _text(value: bytes) -> bytes:
    return pickle.BINUNICODE + struct.pack("<I", len(value)) + value


def _name(module: bytes, name: bytes) -> bytes:
    return pickle.GLOBAL + module + b"\n" + name + b"\n"


def write_torch_file(path: Path, tokens: npt.NDArray[Any]) -> TorchFile:
    """Write `tokens`, one-dimensional int64 or int32, and say where they are in the file.

    Raises ValueError as `tensor_pickle` does. Cost: a copy of the tokens and their CRC-32.
    """
    name = tokens.dtype.name
    entries = [
        ("data.pkl", tensor_pickle(len(tokens), name)),
        (".format_version", b"1"),
        (".storage_alignment", str(ALIGNMENT).encode()),
        ("byteorder", b"little"),
        ("data/0", tokens.astype(tokens.dtype.newbyteorder("<")).tobytes()),
        ("version", b"3\n"),
    ]
    with path.open("wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for entry, data in entries:
            info = zipfile.ZipInfo(f"{ROOT}/{entry}")  # dated 1980, whatever the clock says
            info.create_system = 0
            if entry == "data/0":
                start = stream.tell() + LOCAL_HEADER + len(info.filename.encode()) + 4
                padding = -start % ALIGNMENT
                info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
                offset = start + padding
            archive.writestr(info, data)
    return TorchFile(len(tokens), name, offset)


def read_torch_file(stream: BinaryIO, what: str) -> TorchFile:
    """Where the tokens are in a file of `write_torch_file`. Raises FormatError, naming `what`, for any other file."""
    try:
        with zipfile.ZipFile(stream) as archive:
            info = archive.getinfo(f"{ROOT}/data/0")
            found = archive.read(f"{ROOT}/data.pkl")
            stream.seek(info.header_offset)
            name_bytes, extra_bytes = struct.unpack_from("<HH", stream.read(LOCAL_HEADER), 26)
    except (zipfile.BadZipFile, KeyError, ValueError, struct.error) as error:
        raise FormatError(f"{what}: not a file of PyTorch with tokens ({type(error).__name__}: {error})") from None
    for dtype in STORAGES:
        tokens = info.file_size // np.dtype(dtype).itemsize
        if info.file_size == info.compress_size and tokens <= MOST_TOKENS and found == tensor_pickle(tokens, dtype):
            return TorchFile(tokens, dtype, info.header_offset + LOCAL_HEADER + name_bytes + extra_bytes)
    raise FormatError(f"{what}: not a one-dimensional tensor of int64 or int32, as in exports")
