"""What the parser's process is asked, and how requests and answers cross the pipes to it and back.

A request is its head, a text in UTF-8, and numbers. An answer is its head, and numbers, or the class of an error.
Numbers are signed and of 64 bits. Both sides are the same code on the same machine.
"""

import struct

COMMENTS, UNITS, CONSTRUCTS = range(3)
REQUEST = struct.Struct("=BBQQ")  # question, language (its place in LANGUAGES), bytes of text, numbers
ANSWER = struct.Struct("=BBQ")  # status, whether the process ends behind it, bytes
READY = b"R"  # said once, when requests can come
ANSWERED, NOT_PARSED, FAILED = range(3)
OVER = 77  # code of a process that ends since a parse takes too much: a text that is not parsed
