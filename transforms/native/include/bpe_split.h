/* Where a piece of text ends: the three regular expressions of byte-level BPE, by hand. Included by bpe.c alone.
 *
 * Each function takes the start of a piece inside valid UTF-8 and returns its end, at most `end`, and at least one
 * character on; bytes behind `end` are not read. Cost: linear, one look at each character (and one ahead). */

enum { OTHER = 0, LETTER = 1, NUMBER = 2, SPACE = 3, CLASS = 3, UNSTABLE = 4 };
enum { GPT2 = 0, LLAMA3 = 1, QWEN2 = 2 };

/* Class of the character at p, and its size; the text is valid UTF-8, as CPython made it. */
static inline unsigned class_at(const uint8_t *classes, const uint8_t *p, size_t *size) {
    uint32_t c = p[0];
    if (c < 0x80) {
        *size = 1;
    } else if (c < 0xE0) {
        *size = 2;
        c = (c & 0x1F) << 6 | (p[1] & 0x3F);
    } else if (c < 0xF0) {
        *size = 3;
        c = (c & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    } else {
        *size = 4;
        c = (c & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    }
    return classes[c];
}

static inline const uint8_t *skip(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned class,
                                  unsigned *seen) {
    size_t size;
    for (; p < end; p += size) {
        unsigned found = class_at(classes, p, &size);
        if ((found & CLASS) != class) break;
        *seen |= found;
    }
    return p;
}

/* End of a contraction ('s 't 're 've 'm 'll 'd) at the apostrophe p, or p. In any case also 's with a long s. */
static inline const uint8_t *contraction(const uint8_t *p, const uint8_t *end, int any_case) {
    uint8_t fold = any_case ? 0x20 : 0;
    if (end - p < 2) return p;
    uint8_t a = p[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if (end - p < 3) return p;
    uint8_t b = p[2] | fold;
    if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return p + 3;
    if (any_case && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
    return p;
}

/* End of the whitespace piece at p: the run up to its last character if text follows, so that this one may lead a
 * word; all of it at the end of the text. With `lines`, a run that holds line ends stops behind the last of them. */
static inline const uint8_t *space_piece(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                         int lines) {
    const uint8_t *q = p, *last = p, *line = NULL;
    size_t size;
    for (; q < end; q += size) {
        unsigned found = class_at(classes, q, &size);
        if ((found & CLASS) != SPACE) break;
        *seen |= found;
        if (*q == '\n' || *q == '\r') line = q + 1;
        last = q;
    }
    if (lines && line) return line;
    return q == end || last == p ? q : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline const uint8_t *piece_gpt2(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen) {
    const uint8_t *q = p + (*p == ' ');
    size_t size;
    if (*p == '\'' && (q = contraction(p, end, 0)) != p) return q;
    if (q == end) return end;
    unsigned found = class_at(classes, q, &size);
    *seen |= found;
    if ((found & CLASS) == SPACE) return space_piece(classes, p, end, seen, 0);
    return skip(classes, q + size, end, found & CLASS, seen);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * `digits` is 3 as above, or 1 for \p{N} alone. */
static inline const uint8_t *piece_llama3(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                          int digits) {
    size_t size, next_size;
    const uint8_t *q;
    if (*p == '\'' && (q = contraction(p, end, 1)) != p) return q;
    unsigned found = class_at(classes, p, &size), class = found & CLASS;
    *seen |= found;
    q = p + size;
    if (class == LETTER) return skip(classes, q, end, LETTER, seen);
    if (class == NUMBER) {
        for (int i = 1; i < digits && q < end && (class_at(classes, q, &size) & CLASS) == NUMBER; i++) {
            *seen |= class_at(classes, q, &size);
            q += size;
        }
        return q;
    }
    unsigned next = q < end ? class_at(classes, q, &next_size) : (unsigned)SPACE;
    if ((next & CLASS) == LETTER && *p != '\r' && *p != '\n') return skip(classes, q, end, LETTER, seen);
    if (class == OTHER || (*p == ' ' && q < end && (next & CLASS) == OTHER)) {
        q = skip(classes, q, end, OTHER, seen);
        while (q < end && (*q == '\r' || *q == '\n')) q++;
        return q;
    }
    return space_piece(classes, p, end, seen, 1);
}

static inline const uint8_t *next_piece(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                        int pattern) {
    if (pattern == GPT2) return piece_gpt2(classes, p, end, seen);
    return piece_llama3(classes, p, end, seen, pattern == LLAMA3 ? 3 : 1);
}
