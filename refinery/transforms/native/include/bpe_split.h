/* Where a piece of text ends: the published regular expressions of byte-level BPE, by hand. Included by bpe.c alone.
 *
 * Each function takes the start of a piece inside valid UTF-8 and returns its end, at most `end`, and at least one
 * character on; bytes behind `end` are not read. Cost: linear, one look at each character (and one ahead). */

enum { OTHER = 0, LETTER = 1, NUMBER = 2, SPACE = 3, CLASS = 3, UNSTABLE = 4 };
enum { CAPITAL = 8, SMALL_LETTER = 16, DETAIL = CLASS | 24 }; /* of letters: Lu and Lt, Ll, or both bits: Lm and Lo */
enum { MARK = OTHER | 8, SIGN = OTHER | 16 };                 /* of others: M, and P and S */
enum { GPT2, LLAMA3, QWEN2, CL100K, O200K, TEKKEN, DEEPSEEK, PATTERNS };
static const char *const pattern_names[PATTERNS] = {"gpt2", "llama3", "qwen2", "cl100k", "o200k", "tekken", "deepseek"};

/* Class of the character at p, and its size; the text is valid UTF-8, as CPython made it. */
INLINE unsigned class_at(const uint8_t *classes, const uint8_t *p, size_t *size) {
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

INLINE const uint8_t *skip(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned class,
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

/* Behind the first digit: up to `digits` in all. */
INLINE const uint8_t *more_digits(const uint8_t *classes, const uint8_t *q, const uint8_t *end, unsigned *seen,
                                         int digits) {
    size_t size;
    for (int i = 1; i < digits && q < end; i++, q += size) {
        unsigned found = class_at(classes, q, &size);
        if ((found & CLASS) != NUMBER) break;
        *seen |= found;
    }
    return q;
}

enum { NO_LINES, LINES, LINES_BUT_LAST };

/* End of the whitespace piece at p: the run up to its last character if text follows, so that this one may lead a
 * word; all of it at the end of the text. With LINES, a run that holds line ends stops behind the last of them, even
 * at the end of the text unless it is LINES_BUT_LAST. */
INLINE const uint8_t *space_piece(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
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
    if (line && (lines == LINES || (lines == LINES_BUT_LAST && q < end))) return line;
    return q == end || last == p ? q : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
INLINE const uint8_t *piece_gpt2(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen) {
    const uint8_t *q = p + (*p == ' ');
    size_t size;
    if (*p == '\'' && (q = contraction(p, end, 0)) != p) return q;
    if (q == end) return end;
    unsigned found = class_at(classes, q, &size);
    *seen |= found;
    if ((found & CLASS) == SPACE) return space_piece(classes, p, end, seen, NO_LINES);
    return skip(classes, q + size, end, found & CLASS, seen);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * `digits` is 3 as above, or 1 for \p{N} alone; with LINES_BUT_LAST the end is as in cl100k_base:
 * \s++$|\s*[\r\n]|\s+(?!\S)|\s */
INLINE const uint8_t *piece_llama3(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                          int digits, int lines) {
    size_t size, next_size;
    const uint8_t *q;
    if (*p == '\'' && (q = contraction(p, end, 1)) != p) return q;
    unsigned found = class_at(classes, p, &size), class = found & CLASS;
    *seen |= found;
    q = p + size;
    if (class == LETTER) return skip(classes, q, end, LETTER, seen);
    if (class == NUMBER) return more_digits(classes, q, end, seen, digits);
    unsigned next = q < end ? class_at(classes, q, &next_size) : (unsigned)SPACE;
    if ((next & CLASS) == LETTER && *p != '\r' && *p != '\n') return skip(classes, q, end, LETTER, seen);
    if (class == OTHER || (*p == ' ' && q < end && (next & CLASS) == OTHER)) {
        q = skip(classes, q, end, OTHER, seen);
        while (q < end && (*q == '\r' || *q == '\n')) q++;
        return q;
    }
    return space_piece(classes, p, end, seen, lines);
}

static inline int is_capital(unsigned found) { return ((found & CLASS) == LETTER && found & CAPITAL) || (found & DETAIL) == MARK; }
static inline int is_small(unsigned found) { return ((found & CLASS) == LETTER && found & SMALL_LETTER) || (found & DETAIL) == MARK; }

/* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ where it matches, else the first class alone: p is a letter
 * or a mark. `both`: a match of what follows a character that both classes hold ends there, if no small letter comes. */
INLINE const uint8_t *cased_word(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen) {
    const uint8_t *q = p, *both = NULL;
    size_t size;
    for (; q < end; q += size) {
        unsigned found = class_at(classes, q, &size);
        if (!is_capital(found)) {
            if (!is_small(found)) break;
            for (; q < end && is_small(found = class_at(classes, q, &size)); q += size) *seen |= found;
            return q;
        }
        *seen |= found;
        if (is_small(found)) both = q + size;
    }
    return both ? both : q;
}

/* [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 * |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 * |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * Tekken has \p{N} and no contractions. A mark may be the optional first character or part of what follows: the regular
 * expression tries the first, and falls back to the second where no small letter, nor a letter without case, comes. */
INLINE const uint8_t *piece_o200k(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                         int digits, int contracted) {
    size_t size, next_size;
    unsigned found = class_at(classes, p, &size), class = found & CLASS;
    const uint8_t *q = p + size;
    *seen |= found;
    if (class == NUMBER) return more_digits(classes, q, end, seen, digits);
    unsigned next = q < end ? class_at(classes, q, &next_size) : (unsigned)SPACE;
    int word = class == LETTER || (found & DETAIL) == MARK;
    if (word || (*p != '\r' && *p != '\n' && ((next & CLASS) == LETTER || (next & DETAIL) == MARK))) {
        const uint8_t *stop = cased_word(classes, word ? p : q, end, seen);
        if (stop > q) q = stop; /* whatever the classes say, a piece is not empty */
        return contracted && q < end && *q == '\'' ? contraction(q, end, 1) : q;
    }
    if (class == OTHER || (*p == ' ' && q < end && (next & CLASS) == OTHER)) {
        q = skip(classes, q, end, OTHER, seen);
        while (q < end && (*q == '\r' || *q == '\n' || *q == '/')) q++;
        return q;
    }
    return space_piece(classes, p, end, seen, LINES);
}

/* \p{N}{1,3}, then [\u4e00-\u9fa5\u3040-\u30ff]+, then, in what lies between, DeepSeek's expression:
 * [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+
 * |\s+(?!\S)|\s+ */
static inline int is_east_asian(const uint8_t *p) {
    if (p[0] < 0xE3 || p[0] > 0xE9) return 0;
    uint32_t c = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x4E00 && c <= 0x9FA5);
}

static inline int is_ascii_letter(uint8_t c) { return (uint8_t)((c | 0x20) - 'a') < 26; }

/* Where the part of the text that p is in ends: numbers, East Asian characters and the rest are apart. */
static inline const uint8_t *skip_words(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                        int asian) {
    size_t size;
    for (; p < end; p += size) {
        unsigned found = class_at(classes, p, &size);
        if (((found & CLASS) != LETTER && (found & DETAIL) != MARK) || is_east_asian(p) != asian) break;
        *seen |= found;
    }
    return p;
}

static inline const uint8_t *skip_signs(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                        int asian) {
    size_t size;
    for (; p < end; p += size) {
        unsigned found = class_at(classes, p, &size);
        if ((found & DETAIL) != SIGN || is_east_asian(p) != asian) break;
        *seen |= found;
    }
    return p;
}

/* The end of a match of the third expression at p, or p if there is none. `asian`: in which part p is. */
static inline const uint8_t *deepseek_match(const uint8_t *classes, const uint8_t *p, const uint8_t *end,
                                            unsigned *seen, int asian) {
    size_t size, next_size;
    unsigned found = class_at(classes, p, &size), next = SPACE;
    const uint8_t *q = p + size;
    int inside = q < end && is_east_asian(q) == asian; /* the part goes on, unless a number follows */
    if (inside) {
        next = class_at(classes, q, &next_size);
        inside = (next & CLASS) != NUMBER;
    }
    *seen |= found;
    if (*p < 0x80 && (found & DETAIL) == SIGN && inside && is_ascii_letter(*q)) {
        while (q < end && is_ascii_letter(*q)) q++;
        return q;
    }
    if ((found & CLASS) == LETTER || (found & DETAIL) == MARK) return skip_words(classes, q, end, seen, asian);
    if (inside && *p != '\r' && *p != '\n' && (found & DETAIL) != SIGN
        && ((next & CLASS) == LETTER || (next & DETAIL) == MARK))
        return skip_words(classes, q, end, seen, asian);
    if ((found & DETAIL) == SIGN || (*p == ' ' && inside && (next & DETAIL) == SIGN)) {
        q = skip_signs(classes, q, end, seen, asian);
        while (!asian && q < end && (*q == '\r' || *q == '\n')) q++;
        return q;
    }
    if ((found & CLASS) != SPACE) return p;
    const uint8_t *run = skip(classes, p, end, SPACE, seen), *stop = end;
    if (run < end && ((class_at(classes, run, &size) & CLASS) == NUMBER || is_east_asian(run))) stop = run;
    return space_piece(classes, p, stop, seen, LINES);
}

INLINE const uint8_t *piece_deepseek(const uint8_t *classes, const uint8_t *p, const uint8_t *end,
                                            unsigned *seen) {
    size_t size;
    unsigned found = class_at(classes, p, &size);
    int asian = is_east_asian(p);
    if ((found & CLASS) == NUMBER && !asian) {
        *seen |= found;
        return more_digits(classes, p + size, end, seen, 3);
    }
    for (const uint8_t *q = p;;) { /* what nothing matches is a piece up to the next match, or the end of its part */
        const uint8_t *stop = deepseek_match(classes, q, end, seen, asian);
        if (stop != q) return q == p ? stop : q;
        class_at(classes, q, &size);
        q += size;
        if (q == end || is_east_asian(q) != asian || (class_at(classes, q, &size) & CLASS) == NUMBER) return q;
    }
}

INLINE const uint8_t *next_piece(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                        int pattern) {
    switch (pattern) {
    case GPT2: return piece_gpt2(classes, p, end, seen);
    case LLAMA3: return piece_llama3(classes, p, end, seen, 3, LINES);
    case QWEN2: return piece_llama3(classes, p, end, seen, 1, LINES);
    case CL100K: return piece_llama3(classes, p, end, seen, 3, LINES_BUT_LAST);
    case O200K: return piece_o200k(classes, p, end, seen, 3, 1);
    case TEKKEN: return piece_o200k(classes, p, end, seen, 1, 0);
    default: return piece_deepseek(classes, p, end, seen);
    }
}
