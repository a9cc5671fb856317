/* Anchors and hashes of runs of words of Python strings, by which repeated substrings are found.
 *
 * text -> lower-cased words -> 64-bit word hashes -> hashes of 25 words -> the least of 26 of them in a row (winnowing),
 * and hashes of `size` words. transforms/dedup/substring_hashes.py documents every step.
 *
 * Cost: linear in the characters whatever they are (there is no table of words; the least of 26 is looked for anew at
 * most once per word); memory 8 bytes per word of one text, and what is returned. Safety: arguments are checked at
 * entry; the entries of `table` may be any numbers. The GIL is released while characters are read. Anchors are stored,
 * so their hashes are fixed; they only propose what to compare. Hashes of windows decide, and may have a key: that of
 * words (word_key.h) and a secret base. */

#include <stdlib.h>

#include "word_key.h"

#define GRAM 25   /* words of an anchor */
#define GUARD 26  /* anchors of which the least is chosen */
#define SPAN (GRAM + GUARD - 1) /* words that a window has at least: 50 */
#define RING 32   /* room for GUARD, a power of two */
#define MAX_SIZE 65536
#define MERSENNE MERSENNE_61 /* a prime: no sequence of words collides for every base */
#define BASE 0x0DF1E4A9C35B7D21u       /* of the hash of a window without a key; below MERSENNE */
#define WINDOW_KEY_BYTES (WORD_KEY_BYTES + 8)
#define VALUE_MASK (~(uint64_t)1)      /* the lowest bit is left to flags of who counts */

__extension__ typedef unsigned __int128 Wide;

typedef struct {
    uint64_t *hashes; /* of words */
    uint64_t *secret; /* the same under the key; NULL without one */
    uint32_t *places; /* begin and end of each word in characters; NULL: not wanted */
    size_t count, room;
    int wanted, failed;
    WordKey key;
    uint64_t base;
} Words;

typedef struct {
    uint64_t *values;
    size_t count, room;
} Values;

/* Sliding hashes of GRAM words, and the least of GUARD of them. */
typedef struct {
    uint64_t rolling, leave, ring[RING];
    size_t least; /* number of the word that the leftmost least one begins with */
} Winnow;

INLINE uint64_t multiply(uint64_t a, uint64_t b)
{
    const Wide product = (Wide)a * b;
    const uint64_t sum = (uint64_t)(product & MERSENNE) + (uint64_t)(product >> 61);
    return sum >= MERSENNE ? sum - MERSENNE : sum;
}

INLINE uint64_t reduce(uint64_t value)
{
    const uint64_t sum = (value & MERSENNE) + (value >> 61);
    return sum >= MERSENNE ? sum - MERSENNE : sum;
}

static int grow(Words *w)
{
    const size_t room = w->room ? 2 * w->room : 4096;
    uint64_t *hashes = realloc(w->hashes, room * sizeof(uint64_t));
    if (!hashes)
        return w->failed = 1;
    w->hashes = hashes;
    if (w->key.keyed) {
        uint64_t *secret = realloc(w->secret, room * sizeof(uint64_t));
        if (!secret)
            return w->failed = 1;
        w->secret = secret;
    }
    if (w->wanted) {
        uint32_t *places = realloc(w->places, 2 * room * sizeof(uint32_t));
        if (!places)
            return w->failed = 1;
        w->places = places;
    }
    w->room = room;
    return 0;
}

INLINE void put(Words *w, uint64_t hash, uint64_t secret, Py_ssize_t begin, Py_ssize_t end)
{
    if (w->count == w->room && grow(w))
        return;
    w->hashes[w->count] = fmix64(hash);
    if (w->key.keyed)
        w->secret[w->count] = fmix64(secret ^ w->key.mask);
    if (w->wanted) {
        w->places[2 * w->count] = (uint32_t)begin;
        w->places[2 * w->count + 1] = (uint32_t)end;
    }
    w->count++;
}

INLINE void scan(Words *w, const uint32_t *table, const WordKey *key, int kind, const void *data, Py_ssize_t length)
{
    uint64_t hash = WORD_SEED, secret = key->seed;
    uint32_t inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    Py_ssize_t begin = 0;
    for (Py_ssize_t i = 0; i < length && !w->failed; i++) {
        const uint32_t entry = table[code_point(kind, data, i)], lower = entry & 0xFFFFFF, type = entry >> 24;
        if (type == LETTER && inside == LETTER) {
            hash = (hash ^ lower) * WORD_PRIME;
            if (key->keyed)
                secret = step(key, secret, lower);
            continue;
        }
        if (type == MARK) {
            if (inside) {
                hash = (hash ^ lower) * WORD_PRIME;
                if (key->keyed)
                    secret = step(key, secret, lower);
            }
            continue;
        }
        if (type == LETTER && !inside) {
            hash = (WORD_SEED ^ lower) * WORD_PRIME;
            if (key->keyed)
                secret = step(key, key->seed, lower);
            inside = LETTER;
            begin = i;
            continue;
        }
        if (inside)
            put(w, hash, secret, begin, i);
        hash = type == BORDER ? WORD_SEED : (WORD_SEED ^ lower) * WORD_PRIME;
        if (key->keyed)
            secret = type == BORDER ? key->seed : step(key, key->seed, lower);
        inside = type;
        begin = i;
    }
    if (inside)
        put(w, hash, secret, begin, length);
}

static void find_words(Words *w, const uint32_t *table, PyObject *text)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    const WordKey key = w->key; /* a copy, which no write to the hashes can change */
    w->count = 0;
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        scan(w, table, &key, PyUnicode_1BYTE_KIND, data, length);
        break;
    case PyUnicode_2BYTE_KIND:
        scan(w, table, &key, PyUnicode_2BYTE_KIND, data, length);
        break;
    default:
        scan(w, table, &key, PyUnicode_4BYTE_KIND, data, length);
    }
}

static void begin_winnowing(Winnow *s)
{
    memset(s, 0, sizeof *s);
    s->leave = 1;
    for (int i = 0; i < GRAM; i++)
        s->leave *= ROLL;
}

/* Takes word number i. From word SPAN - 1 on, ring[least] is the leftmost least hash of the last SPAN words. */
INLINE void take(Winnow *s, const uint64_t *words, size_t i)
{
    s->rolling = s->rolling * ROLL + words[i];
    if (i >= GRAM)
        s->rolling -= s->leave * words[i - GRAM];
    if (i < GRAM - 1)
        return;
    const size_t gram = i - (GRAM - 1);
    const uint64_t value = fmix64(s->rolling);
    s->ring[gram % RING] = value;
    if (gram - s->least >= GUARD) { /* the least one has left */
        s->least = gram - (GUARD - 1);
        for (size_t k = s->least + 1; k <= gram; k++)
            if (s->ring[k % RING] < s->ring[s->least % RING])
                s->least = k;
    } else if (value < s->ring[s->least % RING])
        s->least = gram;
}

/* The least hash, mixed once more: least ones are small numbers, and anchors are dealt out by their upper bits. */
INLINE uint64_t anchor(const Winnow *s) { return fmix64(s->ring[s->least % RING]) & VALUE_MASK; }

static int append(Values *v, uint64_t value)
{
    if (v->count == v->room) {
        const size_t room = v->room ? 2 * v->room : 4096;
        uint64_t *values = realloc(v->values, room * sizeof(uint64_t));
        if (!values)
            return -1;
        v->values = values;
        v->room = room;
    }
    v->values[v->count++] = value;
    return 0;
}

static int text_anchors(const Words *w, Values *out)
{
    Winnow s;
    size_t last = SIZE_MAX;
    begin_winnowing(&s);
    for (size_t i = 0; i < w->count; i++) {
        take(&s, w->hashes, i);
        if (i >= SPAN - 1 && s.least != last) {
            last = s.least;
            if (append(out, anchor(&s)) < 0)
                return -1;
        }
    }
    return 0;
}

/* anchors(texts, table) -> (hashes, offsets): uint64 anchors of all texts, and int64 places where those of each text
 * begin, with the end as one more. */
static PyObject *anchors(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *given, *buffer, *texts = NULL, *hashes = NULL, *offsets = NULL, *result = NULL;
    Py_buffer table;
    Words words = {0};
    Values found = {0};
    int failed = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given, &buffer) || take_arrays(arrays, &buffer, &table, 1) < 0)
        return NULL;
    if (check_table(&table) < 0 || !(texts = PySequence_Tuple(given)) || check_texts(texts) < 0)
        goto done;
    const Py_ssize_t count = PyTuple_GET_SIZE(texts);
    offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int64_t));
    if (!offsets)
        goto done;
    char *places = PyBytes_AS_STRING(offsets); /* bytes of an object need not be aligned: memcpy */
    Py_BEGIN_ALLOW_THREADS
    memset(places, 0, sizeof(int64_t));
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        find_words(&words, table.buf, PyTuple_GET_ITEM(texts, i));
        failed = words.failed || text_anchors(&words, &found) < 0;
        const int64_t total = (int64_t)found.count;
        memcpy(places + (i + 1) * (Py_ssize_t)sizeof(int64_t), &total, sizeof(int64_t));
    }
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_NoMemory();
        goto done;
    }
    hashes = PyByteArray_FromStringAndSize((const char *)found.values, (Py_ssize_t)(found.count * sizeof(uint64_t)));
    if (hashes)
        result = PyTuple_Pack(2, hashes, offsets);
done:
    free(words.hashes);
    free(found.values);
    Py_XDECREF(texts);
    Py_XDECREF(hashes);
    Py_XDECREF(offsets);
    PyBuffer_Release(&table);
    return result;
}

static void text_windows(const Words *w, size_t size, uint64_t *least, uint64_t *hashes)
{
    Winnow s;
    uint64_t rolling = 0, leave = 1;
    const uint64_t *words = w->key.keyed ? w->secret : w->hashes;
    begin_winnowing(&s);
    for (size_t i = 0; i < size; i++)
        leave = multiply(leave, w->base);
    for (size_t i = 0; i < w->count; i++) {
        take(&s, w->hashes, i);
        if (i >= SPAN - 1 && i - (SPAN - 1) + size <= w->count)
            least[i - (SPAN - 1)] = anchor(&s);
        rolling = reduce(multiply(rolling, w->base) + reduce(words[i]));
        if (i >= size)
            rolling = reduce(rolling + MERSENNE - multiply(leave, reduce(words[i - size])));
        if (i + 1 >= size)
            hashes[i + 1 - size] = fmix64(rolling) & VALUE_MASK;
    }
}

/* The key of windows: that of their words, then what their base is drawn from. -1 and a Python error for another size. */
static int read_window_key(const KeyBytes *given, Words *w)
{
    const int keyed = given->size != 0;
    const KeyBytes own = {given->bytes, keyed ? WORD_KEY_BYTES : 0};
    uint64_t drawn = 0;
    if (keyed && given->size != WINDOW_KEY_BYTES) {
        PyErr_Format(PyExc_ValueError, "key: %d bytes or none are needed, %zd given", WINDOW_KEY_BYTES, given->size);
        return -1;
    }
    if (keyed)
        memcpy(&drawn, given->bytes + WORD_KEY_BYTES, sizeof drawn);
    w->base = keyed ? 2 + drawn % (MERSENNE_61 - 2) : BASE; /* neither 0 nor 1 */
    return read_word_key(&own, &w->key);
}

/* windows(text, table, size, key=b"") -> (anchors, hashes, places): of every run of `size` words, the anchor of its first SPAN
 * words and its hash, uint64; and uint32 places of every word, (begin, end) in characters. */
static PyObject *windows(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *text, *buffer, *least = NULL, *hashes = NULL, *places = NULL, *result = NULL;
    Py_buffer table;
    Words words = {.wanted = 1};
    Py_ssize_t size;
    KeyBytes key = {"", 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "UOn|y#", &text, &buffer, &size, &key.bytes, &key.size)
        || take_arrays(arrays, &buffer, &table, 1) < 0)
        return NULL;
    if (check_table(&table) < 0 || read_window_key(&key, &words) < 0 || PyUnicode_READY(text) < 0)
        goto done;
    if (size < SPAN || size > MAX_SIZE) {
        PyErr_Format(PyExc_ValueError, "size: %zd given, %d to %d is allowed", size, SPAN, MAX_SIZE);
        goto done;
    }
    if ((uint64_t)PyUnicode_GET_LENGTH(text) > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "text: up to 2^32 - 1 characters are allowed");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    find_words(&words, table.buf, text);
    Py_END_ALLOW_THREADS
    if (words.failed) {
        PyErr_NoMemory();
        goto done;
    }
    const Py_ssize_t count = (Py_ssize_t)words.count >= size ? (Py_ssize_t)words.count - size + 1 : 0;
    least = PyByteArray_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint64_t));
    hashes = PyByteArray_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint64_t));
    places = PyByteArray_FromStringAndSize((const char *)words.places,
                                           (Py_ssize_t)(2 * words.count * sizeof(uint32_t)));
    if (!least || !hashes || !places)
        goto done;
    if (count) {
        uint64_t *chosen = (uint64_t *)(void *)PyByteArray_AS_STRING(least); /* on the heap, so aligned */
        uint64_t *runs = (uint64_t *)(void *)PyByteArray_AS_STRING(hashes);
        Py_BEGIN_ALLOW_THREADS
        text_windows(&words, (size_t)size, chosen, runs);
        Py_END_ALLOW_THREADS
    }
    result = PyTuple_Pack(3, least, hashes, places);
done:
    free(words.hashes);
    free(words.secret);
    free(words.places);
    Py_XDECREF(least);
    Py_XDECREF(hashes);
    Py_XDECREF(places);
    PyBuffer_Release(&table);
    return result;
}

static PyMethodDef methods[] = {
    {"anchors", anchors, METH_VARARGS, "anchors(texts, table) -> (uint64 hashes, int64 offsets)"},
    {"windows", windows, METH_VARARGS,
     "windows(text, table, size, key=b\"\") -> (uint64 anchors, uint64 hashes, uint32 places)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "substrings", "Anchors and hashes of runs of words.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_substrings(void) { return PyModuleDef_Init(&module); }
