"""The comments at the head of a source file, by the marks that languages use; nothing is parsed.

Only what an author writes as a comment says under which licence a file is. Strings and names in code are mentions.
"""

import re

BETWEEN = "\f"
"""A line of code between comments."""

_MARK = re.compile(
    r"\s*(?:/[/*]+!?|\*+/?|#+!?(?!\s*(?:include|define|if|ifdef|ifndef|elif|else|endif|pragma|undef|error|import|line"
    r"|region|endregion)\b)|;+|--+(?!\[)|%+|<!--+|\{-|\(\*+|\|+|\"(?= |$)|'(?!'')|!+|(?:@?rem|dnl|c)(?= )|\.\\\")",
    re.IGNORECASE,
)
_OPEN = re.compile(r"(?:/\*|<!--|\{-|\(\*|--\[=*\[|=begin\b|=pod\b|<#|[rbu]?\"\"\"|[rbu]?''')", re.IGNORECASE)
_CLOSED_BY = {"/*": "*/", "<!--": "-->", "{-": "-}", "(*": "*)", "<#": "#>", "=begin": "=end", "=pod": "=cut"}
_END = re.compile(r"(?:\*+/|--+>|-\}|\*+\)|#>|\*+|\"\"\"|''')\s*$")


def head_comments(text: str) -> str:
    """The lines of comments without their marks; BETWEEN stands for lines of code. Linear."""
    out: list[str] = []
    closing = ""
    for line in text.split("\n"):
        bare = line.strip()
        if not closing and (opening := _OPEN.match(bare)):
            mark = opening[0].lower().lstrip("rbu") or opening[0]
            closing = _CLOSED_BY.get(mark, mark if mark in ('"""', "'''") else "]]")
            inside, bare = True, bare[opening.end() :]
        else:
            inside = bool(closing)
        if inside:
            end = bare.find(closing)
            if end >= 0:
                bare, closing = bare[:end], ""
            mark_end = _MARK.match(bare)
            out.append(_END.sub("", bare[mark_end.end() :] if mark_end else bare).strip())
        elif mark_end := _MARK.match(bare):
            out.append(_END.sub("", bare[mark_end.end() :]).strip())
        else:
            out.append("" if not bare else BETWEEN)
    return "\n".join(out)
