/* A line of text -> rows of the input matrix -> their sum: what fastText calls the hidden vector.
 *
 * Tokens end at a space, a tab, a line break or NUL. A token of the dictionary stands for its row and those of its
 * n-grams of characters, another one for its n-grams alone, a label for nothing; n-grams of words come behind all tokens.
 * A line ends with "\n", which is the token "</s>"; so does a token "</s>" itself. Source: fastText 0.9.2,
 * src/dictionary.cc (getLine, computeSubwords, addWordNgrams).
 *
 * Rows are added in that order, a block at a time, each coordinate by itself: the sum is fastText's to the bit. */

#ifndef REFINERY_FASTTEXT_FEATURES_H
#define REFINERY_FASTTEXT_FEATURES_H

#include "fasttext_model.h"

enum { BLOCK = 512, AHEAD = 12, SHORT_TOKEN = 256 };

#define END_OF_LINE "</s>"
#define LABEL_PREFIX "__label__"

typedef struct {
    const Model *model;
    size_t filled, count; /* rows in the block; rows in all */
    int32_t rows[BLOCK]; /* with pruning: buckets, and ~row for words, until find_rows */
    float hidden[MAX_DIM + 4];
    int32_t *hashes; /* of the tokens so far, with n-grams of words */
    size_t hash_count, hash_room;
    int failed;
} Line;

INLINE const float *row_at(const Model *m, int32_t row) { return m->input + (size_t)row * m->stride; }

/* Adds the rows of the block to hidden[from ... from + 4 width). */
INLINE void add_columns(Line *line, size_t from, int width)
{
    const Model *m = line->model;
    Vector4 sum[4];
    for (int k = 0; k < width; k++)
        memcpy(&sum[k], line->hidden + from + 4 * (size_t)k, sizeof sum[k]);
    for (size_t i = 0; i < line->filled; i++) {
        const float *row = row_at(m, line->rows[i]) + from;
        if (i + AHEAD < line->filled)
            __builtin_prefetch(row_at(m, line->rows[i + AHEAD]) + from);
        for (int k = 0; k < width; k++)
            sum[k] += *(const Vector4 *)(row + 4 * k);
    }
    for (int k = 0; k < width; k++)
        memcpy(line->hidden + from + 4 * (size_t)k, &sum[k], sizeof sum[k]);
}

/* Buckets -> rows of those that were kept: a block at a time, when the bitmap's words have come from memory, and
 * without a branch, since about half of a text's n-grams are kept. */
WITH_POPCNT static void find_rows(Line *line)
{
    const Model *m = line->model;
    size_t found = 0;
    for (size_t i = 0; i < line->filled; i++) {
        const int32_t at = line->rows[i];
        if (at < 0) {
            line->rows[found++] = ~at;
            continue;
        }
        const uint64_t word = m->kept[at / 64], bit = 1ULL << at % 64;
        line->rows[found] = m->kept_row[m->kept_before[at / 64] + (uint32_t)__builtin_popcountll(word & (bit - 1))];
        found += (word & bit) != 0;
    }
    line->filled = found;
}

static __attribute__((noinline)) void add_rows(Line *line)
{
    size_t from = 0;
    if (line->model->kept)
        find_rows(line);
    for (; from + 16 <= line->model->stride; from += 16)
        add_columns(line, from, 4);
    for (; from < line->model->stride; from += 4)
        add_columns(line, from, 1);
    line->count += line->filled;
    line->filled = 0;
}

INLINE void push(Line *line, int32_t entry)
{
    line->rows[line->filled++] = entry;
    if (line->filled == BLOCK)
        add_rows(line);
}

INLINE void push_bucket(Line *line, uint32_t bucket)
{
    const Model *m = line->model;
    if (!m->pruned) {
        push(line, m->words + (int32_t)bucket);
    } else if (m->kept) {
        __builtin_prefetch(&m->kept[bucket / 64]);
        push(line, (int32_t)bucket);
    }
}

/* n-grams of characters of a token between its "<" and ">". */
static void push_subwords(Line *line, const uint8_t *token, size_t n)
{
    const int32_t least = line->model->min_chars, most = line->model->max_chars;
    for (size_t i = 0; i < n; i++) {
        if ((token[i] & 0xC0) == 0x80)
            continue;
        uint32_t hash = FNV_START;
        size_t j = i;
        for (int32_t chars = 1; j < n && chars <= most; chars++) {
            do
                hash = FNV_STEP(hash, token[j]);
            while (++j < n && (token[j] & 0xC0) == 0x80);
            if (chars >= least && !(chars == 1 && (i == 0 || j == n)))
                push_bucket(line, bucket_of(line->model, hash));
        }
    }
}

/* The same where each byte is a character. */
INLINE void push_ascii_subwords(Line *line, const uint8_t *token, size_t n, size_t least, size_t most)
{
    for (size_t i = 0; i < n; i++) {
        const size_t limit = most < n - i ? most : n - i;
        uint32_t hash = FNV_STEP(FNV_START, token[i]);
        if (least == 1 && i > 0 && i + 1 < n)
            push_bucket(line, bucket_of(line->model, hash));
        for (size_t chars = 2; chars <= limit; chars++) {
            hash = FNV_STEP(hash, token[i + chars - 1]);
            if (chars >= least)
                push_bucket(line, bucket_of(line->model, hash));
        }
    }
}

static void push_marked(Line *line, const char *token, size_t n)
{
    uint8_t small[SHORT_TOKEN + 2], *marked = n <= SHORT_TOKEN ? small : PyMem_RawMalloc(n + 2);
    if (!marked) {
        line->failed = 1;
        return;
    }
    marked[0] = '<';
    memcpy(marked + 1, token, n);
    marked[n + 1] = '>';
    uint8_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (uint8_t)token[i];
    const Model *m = line->model;
    if (all < 0x80 && m->min_chars == 2 && m->max_chars == 4) /* lid.176: loops of known length */
        push_ascii_subwords(line, marked, n + 2, 2, 4);
    else if (all < 0x80)
        push_ascii_subwords(line, marked, n + 2, m->min_chars > 1 ? (size_t)m->min_chars : 1, (size_t)m->max_chars);
    else
        push_subwords(line, marked, n + 2);
    if (marked != small)
        PyMem_RawFree(marked);
}

static void note_hash(Line *line, uint32_t hash)
{
    if (line->hash_count == line->hash_room) {
        const size_t room = line->hash_room ? 2 * line->hash_room : 256;
        int32_t *bigger = PyMem_RawRealloc(line->hashes, room * sizeof(int32_t));
        if (!bigger) {
            line->failed = 1;
            return;
        }
        line->hashes = bigger;
        line->hash_room = room;
    }
    line->hashes[line->hash_count++] = (int32_t)hash;
}

static void push_token(Line *line, const char *token, size_t n, int is_end)
{
    const Model *m = line->model;
    const uint32_t hash = hash_bytes(token, n);
    uint64_t steps = 0;
    const int32_t id = find_word(m, token, n, hash, &steps)->id;
    const size_t prefix = sizeof LABEL_PREFIX - 1;
    if (id >= m->words || (id < 0 && n >= prefix && !memcmp(token, LABEL_PREFIX, prefix)))
        return; /* a label */
    if (id >= 0)
        push(line, m->kept ? ~id : id);
    if (m->max_chars > 0 && !is_end)
        push_marked(line, token, n);
    if (m->word_ngrams > 1)
        note_hash(line, hash);
}

static void push_word_ngrams(Line *line)
{
    const Model *m = line->model;
    for (size_t i = 0; i < line->hash_count; i++) {
        uint64_t hash = (uint64_t)(int64_t)line->hashes[i];
        for (size_t j = i + 1; j < line->hash_count && j < i + (size_t)m->word_ngrams; j++) {
            hash = hash * 116049371 + (uint64_t)(int64_t)line->hashes[j];
            push_bucket(line, (uint32_t)(hash % m->buckets));
        }
    }
}

static inline int is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0; }

/* Fills hidden with the mean of the line's rows, padded with zeros. -1 without memory. */
static int read_line(Line *line, const Model *m, const char *text, size_t size)
{
    line->model = m;
    line->filled = line->count = line->hash_count = line->hash_room = 0;
    line->hashes = NULL;
    line->failed = 0;
    memset(line->hidden, 0, (m->stride + 4) * sizeof(float));
    for (size_t i = 0; i < size;) {
        if (is_blank((uint8_t)text[i])) {
            if (text[i++] != '\n')
                continue;
            push_token(line, END_OF_LINE, sizeof END_OF_LINE - 1, 1);
            break;
        }
        const size_t start = i;
        while (i < size && !is_blank((uint8_t)text[i]))
            i++;
        const int is_end = i - start == sizeof END_OF_LINE - 1 && !memcmp(text + start, END_OF_LINE, i - start);
        push_token(line, text + start, i - start, is_end);
        if (is_end)
            break;
    }
    push_word_ngrams(line);
    add_rows(line);
    PyMem_RawFree(line->hashes);
    line->hashes = NULL;
    const float scale = (float)(1.0 / (double)line->count);
    for (size_t j = 0; line->count && j < m->stride; j++)
        line->hidden[j] *= scale;
    return line->failed ? -1 : 0;
}

#endif
