/* Where pieces of ASCII text start, for 64 bytes at once. Included by bpe.c alone, behind bpe_split.h.
 *
 * A block starts where a piece starts. Its bytes become masks, a bit per byte and class of characters, and the published
 * regular expressions become a few shifts of these masks (as simdjson finds the tokens of JSON: Langdale and Lemire
 * 2019). Only starts that the block's own bytes decide are given; what they leave open (a character outside ASCII, a
 * run that goes on behind the block) is left to bpe_split.h, which says the same, one character after the other.
 *
 * Cost: about 150 instructions for 64 bytes, without a branch that depends on where words end. */

enum { BLOCK_BYTES = 64, BEHIND_BLOCK = 16 }; /* bytes that must follow a block, so that a key can be loaded at once */

typedef struct {
    uint64_t letters, capitals, digits, spaces, blanks, lines, marks /* apostrophes */, slashes, odd;
} Masks;

/* One bit per byte of a comparison's result. */
typedef int8_t Lane __attribute__((vector_size(16)));

#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) /* the other version runs under the sanitizer, too */
#include <emmintrin.h>
INLINE uint64_t bits_of(Lane lane) { return (uint64_t)(unsigned)_mm_movemask_epi8((__m128i)lane); }
#else
INLINE uint64_t bits_of(Lane lane) {
    uint64_t half[2];
    memcpy(half, &lane, sizeof half);
    uint64_t low = ((half[0] >> 7) & 0x0101010101010101ULL) * 0x0102040810204080ULL;
    uint64_t high = ((half[1] >> 7) & 0x0101010101010101ULL) * 0x0102040810204080ULL;
    return low >> 56 | high >> 56 << 8;
}
#endif

INLINE Masks masks_of(const uint8_t *p, int pattern) {
    Masks m = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (int at = 0; at < BLOCK_BYTES; at += 16) {
        Lane c, folded;
        memcpy(&c, p + at, sizeof c); /* bytes outside ASCII are negative */
        folded = c | 0x20;
        m.letters |= bits_of((folded > 'a' - 1) & (folded < 'z' + 1)) << at;
        m.digits |= bits_of((c > '0' - 1) & (c < '9' + 1)) << at;
        m.spaces |= bits_of((c == ' ') | ((c > '\t' - 1) & (c < '\r' + 1))) << at;
        m.blanks |= bits_of(c == ' ') << at;
        if (pattern != DEEPSEEK && pattern != TEKKEN) m.marks |= bits_of(c == '\'') << at;
        if (pattern != GPT2) m.lines |= bits_of((c == '\n') | (c == '\r')) << at;
        if (pattern == O200K || pattern == TEKKEN) {
            m.capitals |= bits_of((c > 'A' - 1) & (c < 'Z' + 1)) << at;
            m.slashes |= bits_of(c == '/') << at;
        }
        if (pattern == DEEPSEEK) /* control characters are neither letters nor signs there */
            m.odd |= bits_of(((c < ' ') & ((c < '\t') | (c > '\r'))) | (c == 0x7F)) << at;
        else
            m.odd |= bits_of(c) << at;
    }
    return m;
}

/* The first of each three in a row, in runs of digits whose starts are given. */
INLINE uint64_t thirds(uint64_t digits, uint64_t starts) {
    uint64_t inside = digits & digits << 1 & digits << 2 & digits << 3, more = starts;
    while ((more = more << 3 & inside)) starts |= more;
    return starts;
}

/* The pieces that start behind the apostrophes `at`: what follows a contraction starts one, its letters do not. With
 * `apart` the contraction is a piece, else the end of one; there one that follows another at once is the start of one. */
INLINE uint64_t contractions(uint64_t starts, uint64_t at, const uint8_t *p, int any_case, int apart) {
    for (unsigned last = 0; at; at &= at - 1) {
        unsigned i = (unsigned)__builtin_ctzll(at);
        unsigned size = (unsigned)(contraction(p + i, p + i + 3, any_case) - (p + i));
        if (!size || (!apart && i == last)) continue;
        last = i + size;
        starts &= ~((apart ? (uint64_t)6 : (uint64_t)7) << i);
        if (last < BLOCK_BYTES) starts |= 1ULL << last;
    }
    return starts;
}

INLINE uint64_t starts_gpt2(const Masks *m, const uint8_t *p) {
    uint64_t others = ~(m->letters | m->digits | m->spaces);
    uint64_t text = (m->letters & ~(m->letters << 1)) | (m->digits & ~(m->digits << 1)) | (others & ~(others << 1));
    text &= ~(m->blanks << 1);
    uint64_t spaces = m->spaces & (~(m->spaces << 1) | ~(m->spaces >> 1)); /* the first and the last of a run */
    uint64_t marks = m->marks & text & m->letters >> 1;
    return contractions(text | spaces, marks, p, 0, 1);
}

/* All others. What lies behind *valid is not decided. */
INLINE uint64_t starts_lines(const Masks *m, const uint8_t *p, int pattern, uint64_t *odd) {
    uint64_t others = ~(m->letters | m->digits | m->spaces);
    /* Line ends behind signs belong to them. Adding the first of a run to the run carries through to its end. */
    uint64_t first = m->lines & others << 1, attached = m->lines & ~(m->lines + first);
    if (pattern == O200K || pattern == TEKKEN) *odd |= m->slashes & attached << 1;
    uint64_t spaces = m->spaces & ~attached, lines = m->lines & ~attached, gaps = m->spaces & ~m->lines;
    uint64_t starts = spaces & ~(spaces << 1);
    uint64_t behind = gaps & lines << 1; /* gaps behind the last line end of a run start a piece */
    if ((gaps + behind) & m->lines)
        for (uint64_t left = behind; left; left &= left - 1) {
            uint64_t gap = left & -left;
            if ((gaps + gap) & m->lines) behind &= ~gap;
        }
    uint64_t ends = gaps & ~(m->spaces >> 1); /* the last gap, if text follows, may lead it */
    if (pattern == DEEPSEEK) ends &= ~(m->digits >> 1); /* there numbers are cut out first: as at the end of the text */
    uint64_t signs = others & ~(others << 1) & ~(m->blanks << 1);
    uint64_t words = m->letters & ~(m->letters << 1) & ~((gaps | signs) << 1);
    uint64_t numbers = m->digits;
    if (pattern != QWEN2 && pattern != TEKKEN) numbers = thirds(m->digits, m->digits & ~(m->digits << 1));
    starts |= behind | ends | signs | words | numbers;
    if (pattern == O200K || pattern == TEKKEN) starts |= m->capitals & (m->letters & ~m->capitals) << 1;
    if (pattern == O200K)
        return contractions(starts, m->marks & m->letters << 1 & m->letters >> 1, p, 1, 0);
    if (pattern == LLAMA3 || pattern == QWEN2 || pattern == CL100K)
        return contractions(starts, m->marks & signs & m->letters >> 1, p, 1, 1);
    return starts;
}

/* Bit i: a piece starts at p + i. Bit 0 is always set, and every start before the last given one is given. p is the
 * start of a piece; BLOCK_BYTES + BEHIND_BLOCK bytes can be read. */
INLINE uint64_t piece_starts(const uint8_t *p, int pattern) {
    Masks m = masks_of(p, pattern);
    uint64_t odd = m.odd;
    uint64_t starts = pattern == GPT2 ? starts_gpt2(&m, p) : starts_lines(&m, p, pattern, &odd);
    /* `known` bytes are ASCII and in the block. A start is decided by its own byte and the next, but inside a run of
     * whitespace by the whole run, of which the first byte is a start whatever comes. */
    int known = odd ? __builtin_ctzll(odd) : BLOCK_BYTES;
    if (known < 3) return 1;
    uint64_t before = ~(m.spaces << (BLOCK_BYTES - known));
    int run = before ? __builtin_clzll(before) : BLOCK_BYTES;
    int last = known - (run > 2 ? run : 2);
    return 1 | (starts & ((2ULL << last) - 1));
}

/* The class of an ASCII character that this file takes for granted, with all its details. */
static unsigned plain_class(unsigned c) {
    if (c - 'A' < 26) return LETTER | CAPITAL;
    if (c - 'a' < 26) return LETTER | SMALL_LETTER;
    if (c - '0' < 10) return NUMBER;
    if (c == ' ' || c - '\t' < 5) return SPACE;
    return c > ' ' && c < 0x7F ? SIGN : OTHER;
}

/* Whether ASCII characters have those classes, as far as a pattern looks at them. */
static int is_plain_ascii(const uint8_t *classes, int pattern) {
    unsigned all = CLASS | UNSTABLE | (pattern == O200K || pattern == TEKKEN || pattern == DEEPSEEK ? DETAIL : 0);
    for (unsigned c = 0; c < 0x80; c++)
        if ((classes[c] ^ plain_class(c)) & all) return 0;
    return 1;
}
