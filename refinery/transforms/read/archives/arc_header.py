"""The line that begins a record of an ARC file."""

import re

_ARC_ADDRESS = re.compile(rb"[0-9a-fA-F.:]+|-|unknown")
_ARC_DATE = re.compile(rb"\d{8,17}")


def parse_arc_line(line: bytes) -> dict[str, str] | None:
    """An ARC record's header line as WARC fields, None if it is none.

    Version 1: URL IP-address date content-type length; version 2 has further fields before the length (Internet
    Archive, ARC file format). URLs may hold spaces, so the fields are found by the address and the date.
    """
    words = line.rstrip(b"\r\n").split(b" ")
    for at in range(1, len(words) - 2):
        if _ARC_DATE.fullmatch(words[at + 1]) and _ARC_ADDRESS.fullmatch(words[at]) and words[-1].isdigit():
            url = b" ".join(words[:at])
            if not re.match(rb"[a-z][a-z0-9+.-]{1,15}:", url, re.IGNORECASE):
                return None
            if any(
                _ARC_ADDRESS.fullmatch(word) and b"://" in b" ".join(words[i:at]) for i, word in enumerate(words[:at])
            ):
                return None  # a line that was cut short, and the next record's
            date = words[at + 1].decode()
            fields = {
                "warc-type": "response",
                "warc-target-uri": url.decode("utf-8", "replace"),
                "content-type": b" ".join(words[at + 2 : -1]).decode("utf-8", "replace"),
                "content-length": words[-1].decode(),
            }
            if len(date) >= 14:
                fields["warc-date"] = f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:14]}Z"
            return fields
    return None
