/* Which runs of words of a text stand in a table of hashes: the scan of decontamination, and what fills its tables.
 *
 * text -> lower-cased words -> 64-bit word hashes -> rolling hash of the last n of them -> fmix64 of it and a salt: the
 * key. transforms/filter/ngram_index.py documents every step and owns the tables.
 *
 * Cost: linear in the characters, times the number of lengths; a key that is in the filter costs a binary search. Runs
 * that are no n-grams but whole texts of a few words are looked for only where their last TAIL words are in a filter of
 * their own, so that their many lengths cost nothing elsewhere.
 * Memory: constant for scan() but for its hits, 9 bytes a word for windows(). Safety: arguments are checked at entry;
 * the entries of every array may be any numbers. The GIL is released. The hashes are fixed: tables are kept in files. */

#include <stdlib.h>

#include "words.h"

#define MAX_NGRAM 64 /* a power of 2: places in the ring of the last words */
#define MAX_LENGTHS 2
#define MAX_SHORTER MAX_NGRAM
#define TAIL 8
enum { CONTENT = 1 }; /* of a word: two characters or more, one of them no ASCII digit; or alone in an unspaced script */

typedef struct { int64_t start, end, key; } Hit;

typedef struct {
    const uint32_t *table; /* code point -> kind << 24 | lower-case code point */
    uint64_t salt;
    /* the words so far */
    uint64_t hashes[MAX_NGRAM];
    int64_t starts[MAX_NGRAM];
    uint8_t flags[MAX_NGRAM];
    uint64_t words, solitary;
    int failed;
    /* scan(): lengths that are looked up everywhere, the first being TAIL where there are short ones */
    size_t lengths, ngram[MAX_LENGTHS + 1], n_short, shorter[MAX_SHORTER];
    uint64_t leave[MAX_LENGTHS + 1];
    const uint64_t *keys, *filter, *tails;
    size_t n_keys, hits, room;
    unsigned filter_shift, tails_shift;
    Hit *found;
    /* windows(): of one length; `out` is NULL for scan() */
    uint64_t *out;
    uint8_t *distinct;
} State;

static void add_hit(State *s, int64_t start, int64_t end, size_t key)
{
    if (s->hits == s->room) {
        const size_t room = s->room ? 2 * s->room : 64;
        Hit *more = s->failed ? NULL : realloc(s->found, room * sizeof(Hit));
        if (!more) {
            s->failed = 1;
            return;
        }
        s->found = more;
        s->room = room;
    }
    s->found[s->hits++] = (Hit){start, end, (int64_t)key};
}

/* The place of `key` among the sorted keys, or n_keys. */
static size_t look_up(const State *s, uint64_t key)
{
    size_t low = 0, high = s->n_keys;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_keys && s->keys[low] == key ? low : s->n_keys;
}

/* Three bits in one word of the filter: the highest bits of a key choose the word, its lowest 18 the bits. */
INLINE int in_filter(const uint64_t *filter, unsigned shift, uint64_t key)
{
    const uint64_t mask = 1ull << (key & 63) | 1ull << (key >> 6 & 63) | 1ull << (key >> 12 & 63);
    return (filter[key >> 1 >> shift] & mask) == mask;
}

/* Looks for whole texts that end with the last word. */
static void find_short(State *s, int64_t end)
{
    for (size_t k = 0; k < s->n_short && s->shorter[k] <= s->words; k++) {
        const size_t n = s->shorter[k];
        uint64_t rolling = 0;
        for (size_t i = n; i--;)
            rolling = rolling * ROLL + s->hashes[(s->words - 1 - i) % MAX_NGRAM];
        const size_t place = look_up(s, fmix64(rolling ^ s->salt));
        if (place < s->n_keys)
            add_hit(s, s->starts[(s->words - n) % MAX_NGRAM], end, place);
    }
}

/* Different words with content among the last n; with `all`, different words of any kind. */
static uint8_t count_distinct(const State *s, size_t n, int all)
{
    unsigned count = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t at = (s->words - 1 - i) % MAX_NGRAM;
        int fresh = all || (s->flags[at] & CONTENT);
        for (size_t j = 0; fresh && j < i; j++)
            fresh = s->hashes[(s->words - 1 - j) % MAX_NGRAM] != s->hashes[at];
        count += (unsigned)fresh;
    }
    return (uint8_t)count;
}

/* A word ends: every run of words that ends with it is looked up, or kept. `lengths` and `collect` are constants, and
 * `rolling` is the caller's own, so that it stays in registers. */
INLINE void end_word(State *s, const size_t lengths, const int collect, uint64_t *rolling, uint64_t hash, int64_t start,
                     int64_t end, uint8_t flags)
{
    const size_t at = s->words % MAX_NGRAM, words = s->words + 1;
    const uint64_t mixed = fmix64(hash);
    int tail = 0;
    s->starts[at] = start;
    if (collect)
        s->flags[at] = flags;
    for (size_t k = 0; k < lengths; k++) {
        const size_t n = s->ngram[k];
        rolling[k] = rolling[k] * ROLL + mixed;
        if (words > n)
            rolling[k] -= s->leave[k] * s->hashes[(words - 1 - n) % MAX_NGRAM];
    }
    s->hashes[at] = mixed;
    s->words = words;
    for (size_t k = 0; k < lengths; k++) {
        const size_t n = s->ngram[k];
        if (words < n)
            continue;
        const uint64_t key = fmix64(rolling[k] ^ s->salt);
        if (collect) {
            *s->out++ = key;
            *s->distinct++ = count_distinct(s, n, s->salt != 0);
        } else if (k == 0 && s->n_short) {
            tail = in_filter(s->tails, s->tails_shift, key);
        } else if (in_filter(s->filter, s->filter_shift, key)) {
            const size_t place = look_up(s, key);
            if (place < s->n_keys)
                add_hit(s, s->starts[(words - n) % MAX_NGRAM], end, place);
        }
    }
    if (tail)
        find_short(s, end);
}

INLINE void read_words(State *s, const size_t lengths, const int collect, int kind, const void *data, Py_ssize_t length)
{
    uint64_t hash = WORD_SEED, rolling[MAX_LENGTHS + 1] = {0};
    uint32_t inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    uint32_t letters = 0, beyond = 0;
    Py_ssize_t start = 0, end = 0;
    for (Py_ssize_t i = 0; i <= length; i++) {
        const uint32_t entry = i < length ? s->table[code_point(kind, data, i)] : BORDER << 24;
        const uint32_t lower = entry & 0xFFFFFF, type = entry >> 24;
        if (type == LETTER && inside == LETTER) {
            hash = (hash ^ lower) * WORD_PRIME;
            beyond |= lower - '0' > 9;
            letters++;
            end = i + 1;
            continue;
        }
        if (type == MARK) {
            if (inside) {
                hash = (hash ^ lower) * WORD_PRIME;
                end = i + 1;
            }
            continue;
        }
        if (inside) {
            if (collect)
                s->solitary += inside == SOLITARY;
            end_word(s, lengths, collect, rolling, hash, start, end,
                     inside == SOLITARY || (letters > 1 && beyond) ? CONTENT : 0);
        }
        hash = (WORD_SEED ^ lower) * WORD_PRIME;
        inside = type == LETTER || type == SOLITARY ? type : 0;
        letters = 1;
        beyond = lower - '0' > 9;
        start = i;
        end = i + 1;
    }
}

INLINE void read_kind(State *s, int kind, const void *data, Py_ssize_t length)
{
    if (s->out)
        read_words(s, 1, 1, kind, data, length);
    else if (s->lengths == 1)
        read_words(s, 1, 0, kind, data, length);
    else if (s->lengths == 2)
        read_words(s, 2, 0, kind, data, length);
    else if (s->lengths == 3)
        read_words(s, 3, 0, kind, data, length);
}

static void read_text(State *s, PyObject *text)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        read_kind(s, PyUnicode_1BYTE_KIND, data, length);
        break;
    case PyUnicode_2BYTE_KIND:
        read_kind(s, PyUnicode_2BYTE_KIND, data, length);
        break;
    default:
        read_kind(s, PyUnicode_4BYTE_KIND, data, length);
    }
}

static uint64_t power(size_t n)
{
    uint64_t result = 1;
    while (n--)
        result *= ROLL;
    return result;
}

/* -1 and a ValueError unless a filter has a power of 2 of entries; sets how far a key is shifted to choose one. */
static int take_filter(const char *name, const Py_buffer *view, unsigned *shift)
{
    const uint64_t entries = (uint64_t)view->len / 8;
    if (entries < 1 || (entries & (entries - 1))) {
        PyErr_Format(PyExc_ValueError, "%s: a power of 2 of entries is needed, %zd given", name, view->len / 8);
        return -1;
    }
    *shift = (unsigned)__builtin_clzll(entries); /* 63 less the bits; the last one is shifted apart, for 1 entry */
    return 0;
}

/* Appends an array of lengths. -1 and a ValueError if one is out of bounds. */
static int take_lengths(const char *name, const Py_buffer *view, int64_t least, int64_t most, size_t *lengths,
                        size_t *count)
{
    if (check_range(name, view->len / 8, 0, most) < 0)
        return -1;
    for (Py_ssize_t k = 0; k < view->len / 8; k++) {
        const int64_t n = ((const int64_t *)view->buf)[k];
        if (check_range(name, n, least, MAX_NGRAM) < 0)
            return -1;
        lengths[(*count)++] = (size_t)n;
    }
    return 0;
}

/* scan(text, table, salt, lengths, shorter, keys, filter, tails) -> int64 triples (start, end, place of the key). */
static PyObject *scan(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}, {"lengths", INT64, 0}, {"shorter", INT64, 0},
                                   {"keys", INT64, 0},   {"filter", INT64, 0},  {"tails", INT64, 0}};
    enum { TABLE, LENGTHS, SHORTER, KEYS, FILTER, TAILS, COUNT };
    PyObject *text, *given[COUNT], *number, *result = NULL;
    Py_buffer views[COUNT];
    int64_t salt;
    (void)module;
    if (!PyArg_ParseTuple(args, "UOOOOOOO:scan", &text, &given[TABLE], &number, &given[LENGTHS], &given[SHORTER],
                          &given[KEYS], &given[FILTER], &given[TAILS])
        || PyUnicode_READY(text) < 0 || read_integer(number, "salt", 0, INT64_MAX, &salt) < 0
        || take_arrays(arrays, given, views, COUNT) < 0)
        return NULL;
    State s = {.table = views[TABLE].buf, .salt = (uint64_t)salt, .keys = views[KEYS].buf, .filter = views[FILTER].buf,
               .tails = views[TAILS].buf, .n_keys = (size_t)views[KEYS].len / 8};
    if (check_table(&views[TABLE]) < 0 || take_filter("filter", &views[FILTER], &s.filter_shift) < 0
        || take_filter("tails", &views[TAILS], &s.tails_shift) < 0
        || take_lengths("shorter", &views[SHORTER], TAIL, MAX_SHORTER, s.shorter, &s.n_short) < 0)
        goto done;
    if (s.n_short)
        s.ngram[s.lengths++] = TAIL;
    if (take_lengths("lengths", &views[LENGTHS], 1, MAX_LENGTHS, s.ngram, &s.lengths) < 0)
        goto done;
    for (size_t k = 0; k < s.lengths; k++)
        s.leave[k] = power(s.ngram[k]);
    Py_BEGIN_ALLOW_THREADS
    read_text(&s, text);
    Py_END_ALLOW_THREADS
    result = s.failed ? PyErr_NoMemory()
                      : PyBytes_FromStringAndSize((const char *)s.found, (Py_ssize_t)(s.hits * sizeof(Hit)));
done:
    free(s.found);
    release_arrays(views, COUNT);
    return result;
}

/* windows(text, table, ngram, salt) -> (keys, distinct, words, solitary): uint64 keys of every run of `ngram` words,
 * uint8 numbers of different words in it (with salt 0, of those with content), and how many words there are. */
static PyObject *windows(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *text, *buffer, *numbers[2], *keys = NULL, *distinct = NULL, *result = NULL;
    Py_buffer table;
    int64_t ngram, salt;
    (void)module;
    if (!PyArg_ParseTuple(args, "UOOO:windows", &text, &buffer, &numbers[0], &numbers[1]) || PyUnicode_READY(text) < 0
        || read_integer(numbers[0], "ngram", 1, MAX_NGRAM, &ngram) < 0
        || read_integer(numbers[1], "salt", 0, INT64_MAX, &salt) < 0 || take_arrays(arrays, &buffer, &table, 1) < 0)
        return NULL;
    if (check_table(&table) < 0)
        goto done;
    State s = {.table = table.buf, .salt = (uint64_t)salt, .lengths = 1, .ngram = {(size_t)ngram}};
    s.leave[0] = power((size_t)ngram);
    const Py_ssize_t room = PyUnicode_GET_LENGTH(text); /* at most a word for each character */
    uint64_t *out = s.out = malloc((size_t)room * sizeof(uint64_t) + 1);
    uint8_t *numbers_out = s.distinct = malloc((size_t)room + 1);
    if (out && numbers_out) {
        Py_BEGIN_ALLOW_THREADS
        read_text(&s, text);
        Py_END_ALLOW_THREADS
        keys = PyBytes_FromStringAndSize((const char *)out, (char *)s.out - (char *)out);
        distinct = PyBytes_FromStringAndSize((const char *)numbers_out, s.distinct - numbers_out);
        if (keys && distinct)
            result = Py_BuildValue("OOKK", keys, distinct, (unsigned long long)s.words, (unsigned long long)s.solitary);
    } else {
        PyErr_NoMemory();
    }
    free(out);
    free(numbers_out);
    Py_XDECREF(keys);
    Py_XDECREF(distinct);
done:
    PyBuffer_Release(&table);
    return result;
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, "scan(text, table, salt, lengths, shorter, keys, filter, tails) -> hits"},
    {"windows", windows, METH_VARARGS, "windows(text, table, ngram, salt) -> (keys, distinct, words, solitary)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ngrams", "Runs of words, looked up by hash.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_ngrams(void)
{
    PyObject *self = PyModule_Create(&module);
    if (self && PyModule_AddIntMacro(self, TAIL) < 0)
        Py_CLEAR(self);
    return self;
}
