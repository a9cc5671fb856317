/* MinHash signatures straight from the characters of Python strings.
 *
 * text -> lower-cased words -> 64-bit word hashes -> rolling hash of n words -> 32-bit shingle hash -> minimum of
 * a[k] * fmix32(shingle) + b[k] mod 2^32 over all shingles, for every permutation k ("affine32" of datasketch 2).
 * transforms/signatures.py documents every step and owns the tables.
 *
 * Cost: linear in characters and permutations whatever the text is (there is no table of words); constant memory but
 * for shingles(), which returns 4 bytes per word. Safety: arguments are checked at entry; entries of `table` may be any
 * numbers. The GIL is released. The hashes are fixed, since signatures are stored and compared between runs; whoever
 * knows them can write a text whose signature is that of another one. With a key nobody without it can. */

#include <stdlib.h>

#include "word_key.h"

#define BLOCK 512                      /* shingles between two folds into the signature: 2 KB, stays in L1 */
#define STEP 8                         /* shingles per pass over the permutations */
#define MAX_NGRAM 256
#define MAX_PERMUTATIONS 65536

enum { UNIT_WORD = 0, UNIT_CHARACTER = 1, UNIT_CODE = 2, UNITS = 3 }; /* what a shingle is made of */

typedef struct {
    const uint32_t *table; /* code point -> kind << 24 | lower-case code point */
    int ngram, unit;
    WordKey key;
    uint64_t leave; /* ROLL^ngram: weight of the word that leaves the window */
    const uint32_t *a, *b;
    uint32_t *minima; /* NULL: collect the shingle hashes instead */
    size_t lanes;     /* permutations, padded to a multiple of 16 */
    uint32_t *collected;
    size_t collected_size, collected_room;
    int failed;
    /* per document */
    uint64_t rolling, first, seen;
    int varied;
    size_t filled;
    uint64_t words[MAX_NGRAM + BLOCK]; /* the first ngram entries are those before this block */
    uint32_t hashes[BLOCK + STEP];
} State;

/* Folds n shingle hashes into the minima, STEP at a time so that each minimum is loaded and stored once per STEP.
 * `hashes` has room for STEP - 1 more; the last hash fills them (a minimum does not care). */
VECTORISED static void fold(uint32_t *hashes, size_t n, const uint32_t *restrict a, const uint32_t *restrict b,
                            uint32_t *restrict minima, size_t lanes)
{
    size_t i, k;
    if (n == 0)
        return;
    for (i = n; i % STEP; i++)
        hashes[i] = hashes[n - 1];
    n = i;
    for (i = 0; i < n; i++) { /* the fixed pre-mix of the affine32 scheme */
        uint32_t h = hashes[i];
        h ^= h >> 16;
        h *= 0x85EBCA6Bu;
        h ^= h >> 13;
        h *= 0xC2B2AE35u;
        hashes[i] = h ^ (h >> 16);
    }
    for (i = 0; i < n; i += STEP) {
        const uint32_t h0 = hashes[i], h1 = hashes[i + 1], h2 = hashes[i + 2], h3 = hashes[i + 3];
        const uint32_t h4 = hashes[i + 4], h5 = hashes[i + 5], h6 = hashes[i + 6], h7 = hashes[i + 7];
#define LESSER(x, y) ((x) < (y) ? (x) : (y))
        for (k = 0; k < lanes; k++) {
            uint32_t p0 = a[k] * h0 + b[k], p1 = a[k] * h1 + b[k], p2 = a[k] * h2 + b[k], p3 = a[k] * h3 + b[k];
            uint32_t p4 = a[k] * h4 + b[k], p5 = a[k] * h5 + b[k], p6 = a[k] * h6 + b[k], p7 = a[k] * h7 + b[k];
            uint32_t q0 = LESSER(p0, p1), q1 = LESSER(p2, p3), q2 = LESSER(p4, p5), q3 = LESSER(p6, p7);
            q0 = LESSER(q0, q1);
            q2 = LESSER(q2, q3);
            q0 = LESSER(q0, q2);
            minima[k] = LESSER(minima[k], q0);
        }
    }
}

static void take(State *s, size_t n)
{
    if (s->minima) {
        fold(s->hashes, n, s->a, s->b, s->minima, s->lanes);
        return;
    }
    if (s->failed || n == 0)
        return;
    if (n > s->collected_room - s->collected_size) {
        size_t room = s->collected_room ? 2 * s->collected_room : 4 * BLOCK;
        uint32_t *bigger = realloc(s->collected, room * sizeof(uint32_t));
        if (!bigger) {
            s->failed = 1;
            return;
        }
        s->collected = bigger;
        s->collected_room = room;
    }
    memcpy(s->collected + s->collected_size, s->hashes, n * sizeof(uint32_t));
    s->collected_size += n;
}

/* Turns the words gathered so far into shingle hashes. */
static void drain(State *s)
{
    const size_t ngram = (size_t)s->ngram;
    const uint64_t *words = s->words + ngram;
    size_t produced = 0;
    for (size_t i = 0; i < s->filled; i++) {
        s->rolling = s->rolling * ROLL + words[i];
        if (s->seen >= ngram)
            s->rolling -= s->leave * s->words[i]; /* ngram words ago */
        if (++s->seen >= ngram) {
            uint64_t shingle = fmix64(s->rolling);
            if (s->seen == ngram)
                s->first = shingle;
            s->varied |= shingle != s->first;
            s->hashes[produced++] = (uint32_t)(shingle >> 32);
        }
    }
    memmove(s->words, s->words + s->filled, ngram * sizeof(uint64_t));
    s->filled = 0;
    take(s, produced);
}

INLINE void put(State *s, uint64_t hash)
{
    s->words[(size_t)s->ngram + s->filled++] = fmix64(hash ^ s->key.mask);
    if (s->filled == BLOCK)
        drain(s);
}

INLINE void scan_words(State *s, int kind, const void *data, Py_ssize_t length)
{
    const uint32_t *table = s->table;
    uint64_t hash = s->key.seed;
    int inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    for (Py_ssize_t i = 0; i < length; i++) {
        uint32_t entry = table[code_point(kind, data, i)], lower = entry & 0xFFFFFF, type = entry >> 24;
        if (type == LETTER && inside != SOLITARY) {
            hash = step(&s->key, hash, lower);
            inside = LETTER;
            continue;
        }
        if (type == MARK) {
            if (inside)
                hash = step(&s->key, hash, lower);
            continue;
        }
        if (inside)
            put(s, hash);
        hash = type == BORDER ? s->key.seed : step(&s->key, s->key.seed, lower);
        inside = (int)type;
    }
    if (inside)
        put(s, hash);
}

INLINE void scan_characters(State *s, int kind, const void *data, Py_ssize_t length)
{
    int gap = 0, begun = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        uint32_t entry = s->table[code_point(kind, data, i)];
        if (entry >> 24 == BORDER) {
            gap = begun;
            continue;
        }
        if (gap)
            put(s, step(&s->key, s->key.seed, ' '));
        put(s, step(&s->key, s->key.seed, entry & 0xFFFFFF));
        gap = 0;
        begun = 1;
    }
}

#define AT(j) ((j) < length ? code_point(kind, data, j) : '\n')

INLINE Py_ssize_t after_blanks(int kind, const void *data, Py_ssize_t i, Py_ssize_t length)
{
    while (AT(i) == ' ' || AT(i) == '\t')
        i++;
    return i;
}

/* Behind the characters of `word` at `i`; -1 where others stand there. */
INLINE Py_ssize_t after_word(int kind, const void *data, Py_ssize_t i, Py_ssize_t length, const char *word)
{
    for (; *word; word++, i++)
        if (AT(i) != (uint32_t)*word)
            return -1;
    return i;
}

/* Behind a sign # and the directive `word`; -1 where another one stands at `i`. */
INLINE Py_ssize_t after_directive(int kind, const void *data, Py_ssize_t i, Py_ssize_t length, const char *word)
{
    if (AT(i) != '#')
        return -1;
    const Py_ssize_t end = after_word(kind, data, after_blanks(kind, data, i + 1, length), length, word);
    return end < 0 || (AT(end) > ' ' && AT(end) != '!') ? -1 : after_blanks(kind, data, end, length);
}

INLINE Py_ssize_t after_name(int kind, const void *data, Py_ssize_t i, Py_ssize_t length)
{
    for (;; i++) {
        const uint32_t point = AT(i);
        if (!((point >= '0' && point <= '9') || (point >= 'A' && point <= 'Z') || (point >= 'a' && point <= 'z')
              || point == '_'))
            return i;
    }
}

/* Behind the end of a line on which only blanks stand from `i` on; -1 where something else does. */
INLINE Py_ssize_t after_line(int kind, const void *data, Py_ssize_t i, Py_ssize_t length)
{
    i = after_blanks(kind, data, i, length);
    if (AT(i) == '\r')
        i++;
    return AT(i) == '\n' ? i + 1 : -1;
}

/* Behind an include guard at `i`: #ifndef X or #if !defined(X), then #define X. -1 where there is none. */
INLINE Py_ssize_t after_guard(int kind, const void *data, Py_ssize_t i, Py_ssize_t length)
{
    Py_ssize_t name = after_directive(kind, data, i, length, "ifndef"), closed = 0;
    if (name < 0) {
        name = after_directive(kind, data, i, length, "if");
        if (name < 0 || AT(name) != '!')
            return -1;
        name = after_word(kind, data, after_blanks(kind, data, name + 1, length), length, "defined");
        if (name < 0)
            return -1;
        name = after_blanks(kind, data, name, length);
        closed = AT(name) == '(';
        name = after_blanks(kind, data, name + closed, length);
    }
    const Py_ssize_t end = after_name(kind, data, name, length);
    Py_ssize_t next = closed ? after_word(kind, data, after_blanks(kind, data, end, length), length, ")") : end;
    if (end == name || next < 0 || (next = after_line(kind, data, next, length)) < 0)
        return -1;
    while (next < length && AT(next) <= ' ')
        next++;
    Py_ssize_t again = after_directive(kind, data, next, length, "define");
    if (again < 0)
        return -1;
    for (Py_ssize_t k = name; k < end; k++, again++)
        if (AT(again) != AT(k))
            return -1;
    return after_line(kind, data, again, length);
}

/* Behind what may stand before the licence of a file: an include guard, #pragma once, <?php, <?xml ... ?>. -1 where
 * there is nothing of it at `i`. */
INLINE Py_ssize_t after_opening(int kind, const void *data, Py_ssize_t i, Py_ssize_t length)
{
    Py_ssize_t end = after_guard(kind, data, i, length);
    if (end >= 0)
        return end;
    if ((end = after_directive(kind, data, i, length, "pragma")) >= 0)
        return (end = after_word(kind, data, end, length, "once")) < 0 ? -1 : after_line(kind, data, end, length);
    if ((end = after_word(kind, data, i, length, "<?php")) >= 0)
        return AT(end) <= ' ' ? end : -1;
    if ((end = after_word(kind, data, i, length, "<?xml")) >= 0)
        for (; end < length && AT(end) != '\n'; end++)
            if (AT(end) == '?' && AT(end + 1) == '>')
                return end + 2;
    return -1;
}

/* Where the head of source code ends: comments (lines from // or #, blocks from slash and star), and what may stand
 * before or between them. A # that a directive or an attribute may begin with, #include or #![, is no comment. Where
 * nothing but a head is there: where the comments end that it begins with. */
INLINE Py_ssize_t end_of_head(int kind, const void *data, Py_ssize_t length)
{
    Py_ssize_t i = 0, comments = -1, opening;
    while (i < length) {
        const uint32_t first = AT(i), second = AT(i + 1);
        if (first <= ' ' || first == 0xFEFF) {
            i++;
        } else if (first == '/' && second == '*') {
            for (i += 2; i < length && !(AT(i) == '*' && AT(i + 1) == '/'); i++)
                ;
            i += 2;
        } else if ((first == '/' && second == '/')
                   || (first == '#' && (second <= ' ' || second == '#' || (second == '!' && AT(i + 2) != '[')))) {
            if (first == '#' && second <= ' ' && (opening = after_guard(kind, data, i, length)) >= 0) {
                if (comments < 0)
                    comments = i;
                i = opening; /* "# ifndef X" */
                continue;
            }
            while (i < length && AT(i) != '\n')
                i++;
        } else if ((opening = after_opening(kind, data, i, length)) >= 0) {
            if (comments < 0)
                comments = i;
            i = opening;
        } else {
            return i;
        }
    }
    return comments < 0 ? length : comments;
}
#undef AT

/* Tokens of source code: words in their own case, with underscores; every ASCII sign. No state but the open word, so an
 * open quotation mark changes nothing of what follows. */
INLINE void scan_code(State *s, int kind, const void *data, Py_ssize_t begin, Py_ssize_t length)
{
    uint64_t hash = s->key.seed;
    int inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    for (Py_ssize_t i = begin; i < length; i++) {
        const uint32_t point = code_point(kind, data, i), entry = point == '_' ? LETTER << 24 : s->table[point];
        const uint32_t type = entry >> 24;
        if ((type == LETTER && inside == LETTER) || (type == MARK && inside)) {
            hash = step(&s->key, hash, point);
            continue;
        }
        if (inside)
            put(s, hash);
        hash = step(&s->key, s->key.seed, point);
        inside = type == LETTER || type == SOLITARY ? (int)type : 0;
        if (type == BORDER && point > ' ' && point < 0x7F)
            put(s, hash);
    }
    if (inside)
        put(s, hash);
}

INLINE void scan(State *s, int kind, const void *data, Py_ssize_t length)
{
    if (s->unit == UNIT_CHARACTER)
        scan_characters(s, kind, data, length);
    else if (s->unit == UNIT_CODE)
        scan_code(s, kind, data, end_of_head(kind, data, length), length);
    else
        scan_words(s, kind, data, length);
    if (s->unit == UNIT_CODE && s->seen == 0 && s->filled == 0) /* comments alone */
        scan_code(s, kind, data, 0, length);
    if (s->seen == 0 && s->filled == 0) { /* no word at all: the whole text stands as one */
        uint64_t hash = s->key.seed;
        for (Py_ssize_t i = 0; i < length; i++)
            hash = step(&s->key, hash, code_point(kind, data, i));
        put(s, hash);
    }
}

static void digest(State *s, PyObject *text)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    s->rolling = s->first = s->seen = 0;
    s->varied = 0;
    s->filled = 0;
    if (length == 0)
        return;
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        scan(s, PyUnicode_1BYTE_KIND, data, length);
        break;
    case PyUnicode_2BYTE_KIND:
        scan(s, PyUnicode_2BYTE_KIND, data, length);
        break;
    default:
        scan(s, PyUnicode_4BYTE_KIND, data, length);
    }
    drain(s);
    if (s->seen < (uint64_t)s->ngram) { /* shorter than a shingle: all its words are the shingle */
        s->first = fmix64(s->rolling);
        s->hashes[0] = (uint32_t)(s->first >> 32);
        take(s, 1);
    }
    if (!s->varied) { /* one distinct shingle: its other half makes chance equality 2^-64 instead of 2^-32 */
        s->hashes[0] = (uint32_t)s->first;
        take(s, 1);
    }
}

static int prepare(State *s, const Py_buffer *table, PyObject *size, PyObject *made_of, const KeyBytes *key)
{
    int64_t ngram, unit;
    if (check_table(table) < 0 || read_integer(size, "ngram", 1, MAX_NGRAM, &ngram) < 0
        || read_integer(made_of, "unit", 0, UNITS - 1, &unit) < 0 || read_word_key(key, &s->key) < 0)
        return -1;
    s->table = table->buf;
    s->ngram = (int)ngram;
    s->unit = (int)unit;
    s->leave = 1;
    for (int i = 0; i < ngram; i++)
        s->leave *= ROLL;
    return 0;
}

/* signatures(texts, table, ngram, unit, a, b, out, key=b""): fills out, uint32 of shape (len(texts), len(a)). */
static PyObject *signatures(PyObject *module, PyObject *args)
{
    enum { TABLE, A, B, OUT, BUFFERS };
    static const Array arrays[] = {{"table", UINT32, 0}, {"a", UINT32, 0}, {"b", UINT32, 0}, {"out", UINT32, WRITTEN}};
    PyObject *given, *buffers[BUFFERS], *size, *unit, *texts = NULL, *result = NULL;
    Py_buffer views[BUFFERS];
    uint32_t *lanes = NULL;
    State *s = NULL;
    KeyBytes key = {"", 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOO|y#", &given, &buffers[TABLE], &size, &unit, &buffers[A], &buffers[B],
                          &buffers[OUT], &key.bytes, &key.size)
        || take_arrays(arrays, buffers, views, BUFFERS) < 0)
        return NULL;
    const Py_buffer *a = &views[A], *b = &views[B], *out = &views[OUT];
    if (!(s = calloc(1, sizeof(State)))) {
        PyErr_NoMemory();
        goto done;
    }
    if (prepare(s, &views[TABLE], size, unit, &key) < 0 || !(texts = PySequence_Tuple(given)) || check_texts(texts) < 0)
        goto done;
    const Py_ssize_t count = PyTuple_GET_SIZE(texts);
    const size_t permutations = (size_t)a->len / sizeof(uint32_t);
    if (permutations == 0 || permutations > MAX_PERMUTATIONS || a->len != b->len || out->len / a->len != count
        || out->len % a->len) {
        PyErr_Format(PyExc_ValueError, "a, b and out: 1 to %d uint32 in a, as many in b, out of shape (texts, len(a)) "
                     "are needed", MAX_PERMUTATIONS);
        goto done;
    }
    s->lanes = (permutations + 15) / 16 * 16;
    if (!(lanes = calloc(3 * s->lanes, sizeof(uint32_t)))) {
        PyErr_NoMemory();
        goto done;
    }
    memcpy(lanes, a->buf, (size_t)a->len);
    memcpy(lanes + s->lanes, b->buf, (size_t)b->len);
    s->a = lanes;
    s->b = lanes + s->lanes;
    s->minima = lanes + 2 * s->lanes;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        memset(s->minima, 0xFF, s->lanes * sizeof(uint32_t));
        digest(s, PyTuple_GET_ITEM(texts, i));
        memcpy((char *)out->buf + i * a->len, s->minima, (size_t)a->len);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    free(lanes);
    free(s);
    Py_XDECREF(texts);
    release_arrays(views, BUFFERS);
    return result;
}

/* shingles(text, table, ngram, unit, key=b"") -> bytes: the uint32 shingle hashes in text order, repeats included. */
static PyObject *shingles(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *text, *buffer, *size, *unit, *result = NULL;
    Py_buffer table;
    State *s = NULL;
    KeyBytes key = {"", 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "UOOO|y#", &text, &buffer, &size, &unit, &key.bytes, &key.size)
        || take_arrays(arrays, &buffer, &table, 1) < 0)
        return NULL;
    if (!(s = calloc(1, sizeof(State)))) {
        PyErr_NoMemory();
        goto done;
    }
    if (prepare(s, &table, size, unit, &key) < 0 || PyUnicode_READY(text) < 0)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    digest(s, text);
    Py_END_ALLOW_THREADS
    if (s->failed)
        PyErr_NoMemory();
    else
        result = PyBytes_FromStringAndSize((const char *)s->collected,
                                           (Py_ssize_t)(s->collected_size * sizeof(uint32_t)));
done:
    if (s)
        free(s->collected);
    free(s);
    PyBuffer_Release(&table);
    return result;
}

static PyMethodDef methods[] = {
    {"signatures", signatures, METH_VARARGS, "signatures(texts, table, ngram, unit, a, b, out, key=b\"\") -> None"},
    {"shingles", shingles, METH_VARARGS, "shingles(text, table, ngram, unit, key=b\"\") -> bytes of uint32"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "minhash", "MinHash signatures of texts.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_minhash(void) { return PyModuleDef_Init(&module); }
