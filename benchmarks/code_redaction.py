"""Personal data and secrets in source code: what is replaced, what stays, what that does to the syntax, and the speed.

    python -m benchmarks.code_redaction NAME=rows.jsonl.gz … [--show 20]

Rows have `content` or `text`, and a `path` where they are files. Every row goes through both stages with the code
lane's settings (`style: code`, `remains: fail`); "left alone" is what the defaults for prose would have replaced. A
file is hurt where the syntax tree of what is left has more bytes that the grammar cannot place.
"""

import argparse
import gzip
import json
import time
from collections import Counter
from pathlib import Path

from refinery.transforms.code.languages import LANGUAGES, language_of
from refinery.transforms.code.parse import parse
from refinery.transforms.core.document import Document, Drop, FailClosed, document_id
from refinery.transforms.filter.pii import PiiParams, find_pii, redact_pii
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets

SECRETS, PII = SecretsParams(remains="fail"), PiiParams(style="code", remains="fail")


def left_alone(text: str) -> list[str]:
    """What the defaults for prose would replace, and these do not."""
    taken = [(span.start, span.end) for span in find_pii(text, PII)]
    return [
        text[span.start : span.end]
        for span in find_pii(text, PiiParams())
        if not any(start < span.end and span.start < end for start, end in taken)
    ]


def is_hurt(path: str, before: str, after: str) -> bool:
    """Whether the grammar of the file's language places less of the text after redaction."""
    language = LANGUAGES.get(language_of(path, before))
    if language is None or (parsed := parse(before.encode(), language)) is None:
        return False
    lost = round(parsed.error_share * len(before.encode()))
    again = parse(after.encode(), language)
    return again is None or round(again.error_share * len(after.encode())) > lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--show", type=int, default=0, help="matches to print, of each kind")
    args = parser.parse_args()
    for name, path in (given.split("=", 1) for given in args.inputs):
        counts: Counter[str] = Counter()
        alone: Counter[str] = Counter()
        size, seconds = 0, 0.0
        with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as lines:
            for number, row in enumerate(map(json.loads, lines)):
                text = row.get("content") or row.get("text") or ""
                doc = Document(document_id(text), text, "", name, f"{path}@{number}", number)
                size += len(text.encode())
                start = time.process_time()
                try:
                    clean = redact_secrets(doc, SECRETS)
                    answer = clean if isinstance(clean, Drop) else redact_pii(clean, PII)
                except FailClosed as error:
                    counts["ends the run"] += 1
                    print(error)
                    continue
                seconds += time.process_time() - start
                if isinstance(answer, Drop):
                    counts[answer.reason] += 1
                    continue
                spans = find_pii(text, PII)
                for span in spans:
                    counts[span.kind] += 1
                    if counts[span.kind] <= args.show:
                        print(f"  {span.kind}: {text[max(0, span.start - 30) : span.end + 10]!r}")
                alone.update(left_alone(text))
                counts["secrets"] += int(str(answer.meta.get("secrets", 0)))
                counts["secrets found after both"] += len(find_secrets(answer.text, SECRETS))
                counts["hurt"] += answer.text != text and is_hurt(str(row.get("path", "")), text, answer.text)
        print(f"{name}: {size / 1e6:.1f} MB, {size / 1e6 / seconds:.0f} MB/s")
        print("  replaced: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
        print("  left alone: " + ", ".join(f"{value} {count}" for value, count in alone.most_common(12)))


if __name__ == "__main__":
    main()
