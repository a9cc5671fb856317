"""A parser's process that does what a text says: what tests of parser_process.py run in place of the real one."""

import ctypes
import os
import signal
from array import array

from refinery.transforms.code import parser_child
from refinery.transforms.code.languages import SourceLanguage
from refinery.transforms.code.parser_frames import COMMENTS, CONSTRUCTS, UNITS

answered = 0


def answer(data: bytes, language: SourceLanguage, numbers: "array[int]") -> list[int] | None:
    """[which answer of this process it is, bytes of the text], where the text is no way to die."""
    global answered
    match data.removeprefix(b"// "):
        case b"segmentation fault":
            ctypes.string_at(0)
        case b"abort":
            os.abort()
        case b"out of memory":
            bytearray(parser_child.STACK + parser_child.MEMORY)
        case b"endless":
            while True:
                pass
        case b"killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case b"exit":
            os._exit(0)
        case b"error":
            raise KeyError
        case b"only in a new process" if answered:
            os.abort()
        case b"not parsed":
            return None
    answered += 1
    return [answered, len(data)]


if __name__ == "__main__":
    parser_child.SECONDS = 1
    parser_child.main({COMMENTS: answer, UNITS: answer, CONSTRUCTS: answer})
