/* What repeats in a text, as DCLM's code or dolma's counts: lines, paragraphs and n-grams. All occurrences count. */

#include "counting_quality.h"

enum { MAX_NGRAM = 10 };

typedef struct { uint64_t counted, whole; } Share;
typedef struct {
    Spans pieces, words;
    Table ngrams;
    Vector ids, positions, ngram_ids, counts; /* uint32_t */
    size_t count, chars, ngram_steps;         /* words, and their characters; steps of the table of n-grams */
} Repeats;

typedef struct { uint64_t pieces, chars, repeated, repeated_chars; } Tally;

INLINE double ratio(Share share)
{
    return share.whole ? (double)share.counted / (double)share.whole : 0.0; /* both are below 2^53 */
}

/* The place of the next line break from `i` on, or `n`. */
INLINE size_t next_break(const void *data, const int kind, size_t i, size_t n)
{
    if (kind == PyUnicode_1BYTE_KIND) {
        const char *found = i < n ? memchr((const char *)data + i, '\n', n - i) : NULL;
        return found ? (size_t)(found - (const char *)data) : n;
    }
    while (i < n && PyUnicode_READ(kind, data, i) != '\n')
        i++;
    return i;
}

/* The pieces between so many line breaks. DCLM: without white space around them, and not the blank ones. */
INLINE int tally_pieces(const void *data, const int kind, size_t n, size_t breaks, const int units, Spans *s, Tally *out)
{
    *out = (Tally){0};
    if (spans_reset(s, n / (64 * breaks)) < 0)
        return -1;
    for (size_t start = 0, from = 0;;) {
        size_t end = next_break(data, kind, from, n);
        if (breaks == 2 && end < n && !(end + 1 < n && PyUnicode_READ(kind, data, end + 1) == '\n')) {
            from = end + 1;
            continue;
        }
        const size_t next = end;
        if (units == DCLM) {
            while (start < end && (class_of(PyUnicode_READ(kind, data, start)) & SPACE))
                start++;
            while (start < end && (class_of(PyUnicode_READ(kind, data, end - 1)) & SPACE))
                end--;
        }
        if (units == DOLMA || start < end) {
            if (span_id(s, data, kind, n, start, end - start) < 0)
                return -1;
            out->pieces++;
            out->chars += end - start;
        }
        if (next == n)
            break;
        start = from = next + breaks;
    }
    const Span *spans = s->spans.items;
    for (size_t id = 0; id < s->used; id++) {
        if (spans[id].count < 2)
            continue;
        out->repeated += spans[id].count;
        out->repeated_chars += (uint64_t)spans[id].chars * spans[id].count;
    }
    return 0;
}

/* Shares of lines, of paragraphs, of characters of lines and of paragraphs. DCLM: of no pieces all. dolma: without
 * paragraphs, and of the characters of words. */
INLINE int repeated_pieces(const void *data, const int kind, size_t n, const int units, Repeats *r, double *shares)
{
    Tally lines, paragraphs = {0};
    if (tally_pieces(data, kind, n, 1, units, &r->pieces, &lines) < 0)
        return -1;
    if (units == DOLMA) {
        lines.chars = 0;
        for (size_t i = 0; i < n; i++)
            lines.chars += !(class_of(PyUnicode_READ(kind, data, i)) & SPACE);
        lines.chars = lines.chars ? lines.chars : 1;
    } else if (tally_pieces(data, kind, n, 2, units, &r->pieces, &paragraphs) < 0) {
        return -1;
    }
    const Tally *tallies[] = {&lines, &paragraphs};
    for (size_t i = 0; i < 2; i++) {
        const Tally *t = tallies[i];
        const int none = units == DCLM && !t->pieces;
        shares[i] = none ? 1.0 : ratio((Share){t->repeated, t->pieces});
        shares[i + 2] = none ? 1.0 : ratio((Share){t->repeated_chars, t->chars});
    }
    return 0;
}

INLINE size_t next_spaced_word(const void *data, const int kind, size_t n, size_t *at)
{
    size_t i = *at;
    while (i < n && (class_of(PyUnicode_READ(kind, data, i)) & SPACE))
        i++;
    *at = i;
    while (i < n && !(class_of(PyUnicode_READ(kind, data, i)) & SPACE))
        i++;
    return i - *at;
}

/* Numbers the words of the text. */
INLINE int number_words(const void *data, const int kind, size_t n, const int units, Repeats *r)
{
    size_t count = 0, chars = 0;
    if (spans_reset(&r->words, n / 8) < 0)
        return -1;
    for (size_t at = 0, length;; at += length) {
        length = units == DCLM ? next_word(data, kind, n, &at) : next_spaced_word(data, kind, n, &at);
        if (!length)
            break;
        const int64_t id = span_id(&r->words, data, kind, n, at, length);
        if (id < 0 || reserve(&r->ids, count + 1, sizeof(uint32_t)) < 0)
            return -1;
        ((uint32_t *)r->ids.items)[count++] = (uint32_t)id;
        chars += length;
    }
    r->count = count;
    r->chars = chars;
    return 0;
}

/* Characters of the words from `start` to `end`. */
INLINE uint64_t chars_of(const Repeats *r, size_t start, size_t end)
{
    const uint32_t *ids = r->ids.items;
    const Span *words = r->words.spans.items;
    uint64_t chars = 0;
    for (size_t w = start; w < end; w++)
        chars += words[ids[w]].chars;
    return chars;
}

/* Characters of the most frequent n-gram, times its occurrences; 0 if none of the candidates occurs twice. Of several
 * DCLM takes the longest, dolma the first. */
static uint64_t top_chars(const Repeats *r, size_t n, size_t found, const int units)
{
    const uint32_t *counts = r->counts.items, *ids = r->ngram_ids.items, *positions = r->positions.items;
    uint32_t most = 1;
    uint64_t chars = 0;
    for (size_t id = 0; id < r->ngrams.used; id++)
        most = counts[id] > most ? counts[id] : most;
    for (size_t j = 0; most > 1 && j < found; j++) {
        if (counts[ids[j]] != most)
            continue;
        const uint64_t size = chars_of(r, positions[j], positions[j] + n);
        chars = size > chars ? size : chars;
        if (units == DOLMA)
            break;
    }
    return chars * most;
}

/* Characters of n-grams that occur more than once. DCLM: of their words, each once. dolma: of all their occurrences. */
static uint64_t repeated_chars(const Repeats *r, size_t n, size_t found, const int units)
{
    const uint32_t *counts = r->counts.items, *ids = r->ngram_ids.items, *positions = r->positions.items;
    uint64_t chars = 0;
    size_t next = 0; /* words before it are counted */
    for (size_t j = 0; j < found; j++) {
        if (counts[ids[j]] < 2)
            continue;
        const size_t start = positions[j], end = start + n;
        chars += chars_of(r, units == DCLM && next > start ? next : start, end);
        next = end;
    }
    return chars;
}

/* Counts of the n-grams that may repeat, by growing n: both (n-1)-grams in one are repeated, too. An n-gram is the pair
 * of their numbers. shares[n - 2]: for n from 2 to `most` the share of the most frequent n-gram, for n from 5 on that
 * of repeated ones. */
static int count_ngrams(Repeats *r, size_t most, const int units, Share *shares)
{
    if (reserve(&r->positions, r->count, sizeof(uint32_t)) < 0 || reserve(&r->ngram_ids, r->count, sizeof(uint32_t)) < 0)
        return -1;
    uint32_t *positions = r->positions.items, *ngrams = r->ngram_ids.items;
    const uint32_t *ids = r->ids.items;
    const Span *words = r->words.spans.items;
    size_t candidates = 0;
    uint64_t whole = r->chars; /* dolma: characters of all n-grams */
    for (size_t i = 0; i < r->count; i++) {
        positions[candidates] = (uint32_t)i;
        ngrams[candidates] = ids[i];
        candidates += words[ids[i]].count > 1;
    }
    r->ngram_steps = 0;
    for (size_t n = 2; n <= most; n++) {
        size_t found = 0, kept = 0;
        if (units == DOLMA)
            whole = n > r->count ? 0
                                 : whole - chars_of(r, r->count - n + 1, r->count) + r->chars - chars_of(r, 0, n - 1);
        if (table_reset(&r->ngrams, candidates) < 0)
            return -1;
        for (size_t j = 0; j + 1 < candidates; j++) {
            if (positions[j + 1] != positions[j] + 1)
                continue;
            const size_t used = r->ngrams.used;
            const int64_t id = table_insert(&r->ngrams, (uint64_t)ngrams[j] << 32 | ngrams[j + 1]);
            if (id < 0 || reserve(&r->counts, used + 1, sizeof(uint32_t)) < 0)
                return -1;
            uint32_t *count = (uint32_t *)r->counts.items + id;
            *count = (size_t)id == used ? 1 : *count + 1;
            positions[found] = positions[j];
            ngrams[found++] = (uint32_t)id;
        }
        Share *share = &shares[n - 2];
        share->whole = n < 5 || units == DCLM ? r->chars : whole;
        share->counted = n < 5 ? top_chars(r, n, found, units) : repeated_chars(r, n, found, units);
        if (units == DOLMA && n < 5 && !share->counted && n <= r->count)
            share->counted = chars_of(r, 0, n); /* none repeats: the first one */
        const uint32_t *counts = r->counts.items;
        for (size_t j = 0; j < found; j++) {
            positions[kept] = positions[j];
            ngrams[kept] = ngrams[j];
            kept += counts[ngrams[j]] > 1;
        }
        candidates = kept;
        r->ngram_steps += r->ngrams.steps;
    }
    return 0;
}
