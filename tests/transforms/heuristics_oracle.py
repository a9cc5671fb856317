"""What `transforms.native.heuristics.measure` counts, a second time, in plain Python: one definition per count."""

import unicodedata
from collections import Counter
from itertools import pairwise

from hypothesis import strategies as st

from refinery.transforms.native import heuristics as kernel
from tests.native.unicode_scripts import is_unspaced

# Unicode property Sentence_Terminal and three Khmer signs.
_TERMINALS = """
21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 17D4-17D6 17D9-17DA
1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 2024 203C-203D 2047-2049
2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F
AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048
110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3
115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F
16AF5 16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88
"""
TERMINALS = {
    chr(c) for span in _TERMINALS.split() for c in range(int(span.split("-")[0], 16), int(span.split("-")[-1], 16) + 1)
}
CLOSERS = "\"')]}’”»」』】》〉）"
BULLETS = tuple("-*•‣◦▪●⁃·")
CODE = set("{}()<>=;&+\\$")
POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
ASCII_LOWER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


def is_spaceless(c: str) -> bool:
    return c.isalpha() and is_unspaced(c)


def is_mark(c: str) -> bool:
    return unicodedata.category(c)[0] == "M" or c in "\u200b\u200c\u200d\u2060\ufeff"


def words_of(line: str) -> list[tuple[str, bool]]:
    """(word, whether whitespace or the line's start stands before it)."""
    words: list[tuple[str, bool]] = []
    for run in line.split():
        parts: list[str] = []
        for c in run:
            after_spaceless = bool(parts) and is_spaceless(parts[-1][0])
            if not parts or is_spaceless(c) or (after_spaceless and not is_mark(c)):
                parts.append(c)
            else:
                parts[-1] += c
        words += [(part, i == 0) for i, part in enumerate(parts)]
    return words


def is_code(line: str) -> bool:
    solid = "".join(line.split())
    return solid[-1] in ";{}" or 10 * sum(c in CODE for c in solid) >= len(solid)


def count_sentences(line: str) -> int:
    ends = [
        before.rstrip(CLOSERS)[-1:] in TERMINALS and not after[0].islower()
        for (before, _), (after, _) in pairwise(words_of(line))
    ]
    return 1 + sum(ends)


def is_removed(line: str, min_words: int, max_word_chars: int, flags: int) -> bool:
    words, low, end = words_of(line), line.translate(ASCII_LOWER), line.rstrip()
    terminal = (end[-1] in TERMINALS or end[-1] in "\"'”’") and not end.endswith("...")
    return (
        len(words) < min_words
        or (max_word_chars > 0 and any(len(word) > max_word_chars for word, _ in words))
        or (flags & kernel.NEED_TERMINAL > 0 and not terminal)
        or (flags & kernel.NO_JAVASCRIPT > 0 and "javascript" in low)
        or (flags & kernel.NO_POLICY > 0 and any(phrase in low for phrase in POLICY))
    )


def keep_lines(text: str, min_words: int, max_word_chars: int, flags: int) -> str:
    """`text` without its removed lines; where they stood, a line break, or two if a blank line stood there too."""
    out, between, blank, removed, first = [], "", False, False, True
    for whole in text.splitlines(keepends=True):
        line = whole.splitlines()[0]
        if not line.strip():
            between, blank = between + whole, True
        elif is_removed(line, min_words, max_word_chars, flags):
            removed = True
        else:
            out.append(between if not removed else "" if first else "\n\n" if blank else "\n")
            out.append(line)
            between, blank, removed, first = whole[len(line) :], False, False, False
    return "".join(out) + ("" if removed else between)


def duplicates(items: list[str]) -> tuple[int, int]:
    seen: set[str] = set()
    again = [item for item in items if item in seen or seen.add(item)]  # type: ignore[func-returns-value]
    return len(again), sum(map(len, again))


def paragraphs_of(text: str) -> list[str]:
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def top_chars(words: list[tuple[str, bool]], n: int) -> int:
    grams = [tuple(word for word, _ in words[i : i + n]) for i in range(len(words) - n + 1)]
    if not grams or (best := Counter(grams).most_common(1)[0])[1] < 2:
        return 0
    at = grams.index(best[0])
    return best[1] * (sum(map(len, best[0])) + sum(spaced for _, spaced in words[at + 1 : at + n]))


def duplicate_chars(words: list[tuple[str, bool]], n: int) -> int:
    seen, i, total = set(), 0, 0
    while i + n <= len(words):
        gram = tuple(word for word, _ in words[i : i + n])
        if gram in seen:
            total += sum(map(len, gram))
            i += n
        else:
            seen.add(gram)
            i += 1
    return total


def measure(
    text: str,
    stop_words: tuple[tuple[str, ...], ...],
    max_ngram: int,
    short_line_chars: int,
    min_line_words: int,
    max_word_chars: int,
    flags: int,
) -> dict[str, int | str | None]:
    """The fields of `Features` by name."""
    spaced = words_of(text)
    words = [word for word, _ in spaced]
    alnum = [word for word in words if any(c.isalnum() for c in word)]
    lines = [line for line in text.splitlines() if line.strip()]
    kept = keep_lines(text, min_line_words, max_word_chars, flags)
    kept_lines = [line for line in kept.splitlines() if line.strip()]
    on_words, on_lines, on_paragraphs = (flags & bit > 0 for bit in (kernel.WORDS, kernel.LINES, kernel.PARAGRAPHS))
    dup_lines, dup_line_chars = duplicates(lines) if on_lines else (0, 0)
    paragraphs = paragraphs_of(text) if on_paragraphs else []
    dup_paragraphs, dup_paragraph_chars = duplicates(paragraphs)
    windows = [words[i : i + kernel.WINDOW_WORDS] for i in range(0, len(words), kernel.WINDOW_WORDS)]
    # C4 looks for dummy text behind the rules on form, for brackets behind those and the one on javascript.
    formed, scriptless = (
        [line for line in lines if not is_removed(line, min_line_words, max_word_chars, flags & earlier)]
        for earlier in (kernel.NEED_TERMINAL, kernel.NEED_TERMINAL | kernel.NO_JAVASCRIPT)
    )
    counts: dict[str, int | str | None] = {
        "words": len(words),
        "alnum_words": len(alnum),
        "alnum_word_chars": sum(map(len, alnum)),
        "alphabetic_words": sum(any(c.isalpha() for c in word) for word in words),
        "letters": sum(c.isalpha() for c in text),
        "spaceless_letters": sum(is_spaceless(c) for c in text),
        "stop_words": max((len(set(words) & set(s)) for s in stop_words), default=0) if on_words else 0,
        "window_unique_words": sum(len(set(window)) for window in windows) if on_words else 0,
        "punctuation": sum(unicodedata.category(c)[0] in "PS" for c in text),
        "hashes": text.count("#"),
        "ellipses": text.count("...") + text.count("…"),
        "curly_brackets": sum("{" in line for line in scriptless),
        "lorem_ipsum": sum("lorem ipsum" in line.translate(ASCII_LOWER) for line in formed),
        "lines": len(lines),
        "bullet_lines": sum(line.lstrip().startswith(BULLETS) for line in lines),
        "ellipsis_lines": sum(line.rstrip().endswith(("...", "…")) for line in lines),
        "code_lines": sum(map(is_code, lines)),
        "duplicate_lines": dup_lines,
        "duplicate_line_chars": dup_line_chars,
        "paragraphs": len(paragraphs),
        "duplicate_paragraphs": dup_paragraphs,
        "duplicate_paragraph_chars": dup_paragraph_chars,
        "kept_lines": len(kept_lines),
        "kept_words": len(words_of(kept)),
        "kept_sentences": sum(map(count_sentences, kept_lines)),
        "kept_line_breaks": sum(whole.splitlines()[0] != whole for whole in kept.splitlines(keepends=True)),
        "kept_line_chars": sum(map(len, kept.splitlines())),
        "kept_terminal_lines": sum(line.rstrip()[-1] in TERMINALS for line in kept_lines),
        "kept_short_lines": sum(len(line) <= short_line_chars for line in kept_lines),
        "kept_duplicate_line_chars": duplicates(kept_lines)[1] if on_lines else 0,
        "text": None if kept == text else kept,
    }
    for n in range(2, 5):
        counts[f"top_{n}_gram_chars"] = top_chars(spaced, n) if on_words and n <= max_ngram else 0
    for n in range(5, 11):
        counts[f"duplicate_{n}_gram_chars"] = duplicate_chars(spaced, n) if on_words and n <= max_ngram else 0
    return counts


# Texts in which every count has something to find.
VOCABULARY = """
the of and The a b be to word words Javascript JAVASCRIPT lorem ipsum terms use privacy policy cookie cookies uses i'm
{x} x; 3.14 e.g. end. End! (so.) said.” ... …… #tag -- - • * é naïve Ωμέγα слово नमस्ते ① ½ 的 中文字 日本語。 「はい。」
カタカナ ｶﾞ ไทย ที่นี่ ລາວ ខ្មែរ မြန်မာ 😀 𠀀𠀁 ๑๒ \ud800 \u200b \x00
"""
SPACES = [*"   \n\n\r\t\x0b\x1c\xa0\u2028\u3000", "", "  ", "\n\n", "\r\n", "\n \n"]
CHARACTERS = st.one_of(
    st.characters(),
    st.sampled_from("abAB.!?。\"')\u201d-*•…#{}();= \n\r\t\u3000的ที\u0301\u200b१\ud800k"),
)
TEXTS = st.one_of(
    st.lists(st.tuples(st.sampled_from(VOCABULARY.split()), st.sampled_from(SPACES)), max_size=120).map(
        lambda pairs: "".join(word + space for word, space in pairs)
    ),
    st.lists(st.sampled_from(["a", "b", "c\n", "a b c. \n", "d e f\n\n"]), max_size=80).map(" ".join),
    st.text(CHARACTERS, max_size=80),
)
