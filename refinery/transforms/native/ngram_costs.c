/* Word n-grams of Python strings, straight from their characters, and what a model of them costs a text.
 *
 * The words are those of words.h, so every script has some. A text begins with two START words. The key of an n-gram is
 * the rolling hash of its words' keys, then fmix64. The model is one open-addressing table of a power of two slots with
 * linear probing: key (0: empty), cost and backoff in 1/65536 bit. transforms/filter/ngram_model.py documents it.
 *
 * Cost: linear; three to four probes of the table for each word. Safety: arguments are checked at entry; keys and costs
 * may be any numbers (a probe ends after at most a round of the table, a sum of costs cannot overflow: each is below
 * 2^31, a word has three, and a text below 2^60 characters). The GIL is released while characters are read. */

#include "words.h"

#define UNKNOWN 1u /* key of every word that the model lacks */
#define START 2u   /* key of the words before the first */

typedef struct {
    const uint32_t *characters;
    const int64_t *keys; /* NULL: the words are written to `out` */
    const int32_t *costs;
    uint64_t mask;
    int64_t *out;
    uint64_t a, b;                 /* keys of the two words before */
    int64_t before, single_before; /* slots of (a, b) and of b, -1 for none */
    int64_t words, cost;
} Scan;

INLINE uint64_t at_least_3(uint64_t key) { return key < 3 ? key + 3 : key; }

INLINE uint64_t pair_key(uint64_t a, uint64_t b) { return at_least_3(fmix64(a * ROLL + b)); }

INLINE uint64_t triple_key(uint64_t a, uint64_t b, uint64_t c)
{
    return at_least_3(fmix64(((a ^ WORD_SEED) * ROLL + b) * ROLL + c));
}

/* The slot of a key, -1 for none. */
INLINE int64_t find(const Scan *scan, uint64_t key)
{
    uint64_t slot = key & scan->mask;
    for (uint64_t step = 0; step <= scan->mask; step++) {
        const uint64_t there = (uint64_t)scan->keys[slot];
        if (there == key)
            return (int64_t)slot;
        if (!there)
            return -1;
        slot = (slot + 1) & scan->mask;
    }
    return -1;
}

INLINE int64_t backoff(const Scan *scan, int64_t slot) { return slot < 0 ? 0 : scan->costs[2 * slot + 1]; }

INLINE void take_word(Scan *scan, uint64_t hash)
{
    uint64_t word = at_least_3(fmix64(hash));
    scan->words++;
    if (!scan->keys) {
        if (scan->out)
            *scan->out++ = (int64_t)word;
        return;
    }
    int64_t single = find(scan, word);
    if (single < 0)
        single = find(scan, word = UNKNOWN);
    const int64_t pair = find(scan, pair_key(scan->b, word));
    const int64_t triple = find(scan, triple_key(scan->a, scan->b, word));
    if (triple >= 0)
        scan->cost += scan->costs[2 * triple];
    else if (pair >= 0)
        scan->cost += backoff(scan, scan->before) + scan->costs[2 * pair];
    else
        scan->cost += backoff(scan, scan->before) + backoff(scan, scan->single_before)
                      + (single < 0 ? 0 : scan->costs[2 * single]);
    scan->a = scan->b;
    scan->b = word;
    scan->before = pair;
    scan->single_before = single;
}

INLINE void read_words(Scan *scan, int kind, const void *data, Py_ssize_t length)
{
    uint64_t hash = WORD_SEED;
    uint32_t inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    for (Py_ssize_t i = 0; i < length; i++) {
        const uint32_t entry = scan->characters[code_point(kind, data, i)], lower = entry & 0xFFFFFF;
        const uint32_t type = entry >> 24;
        if ((type == LETTER && inside != SOLITARY) || type == MARK) {
            if (type == LETTER || inside)
                hash = (hash ^ lower) * WORD_PRIME;
            inside = type == LETTER ? LETTER : inside;
            continue;
        }
        if (inside)
            take_word(scan, hash);
        hash = type == BORDER ? WORD_SEED : (WORD_SEED ^ lower) * WORD_PRIME;
        inside = type;
    }
    if (inside)
        take_word(scan, hash);
}

static void read_text(Scan *scan, PyObject *text)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        read_words(scan, PyUnicode_1BYTE_KIND, data, length);
        break;
    case PyUnicode_2BYTE_KIND:
        read_words(scan, PyUnicode_2BYTE_KIND, data, length);
        break;
    default:
        read_words(scan, PyUnicode_4BYTE_KIND, data, length);
    }
}

static int check_text(PyObject *text)
{
    if (PyUnicode_Check(text))
        return PyUnicode_READY(text);
    PyErr_Format(PyExc_TypeError, "text: str is needed, %.100s given", Py_TYPE(text)->tp_name);
    return -1;
}

/* word_keys(text, table) -> bytearray of int64, one key for each word. */
static PyObject *word_keys(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *text, *given, *result = NULL;
    Py_buffer table;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &text, &given) || check_text(text) < 0
        || take_arrays(arrays, &given, &table, 1) < 0)
        return NULL;
    if (check_table(&table) < 0)
        goto done;
    Scan scan = {.characters = table.buf};
    Py_BEGIN_ALLOW_THREADS
    read_text(&scan, text);
    Py_END_ALLOW_THREADS
    if (scan.words > PY_SSIZE_T_MAX / 16) {
        PyErr_NoMemory();
        goto done;
    }
    if (!(result = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)scan.words * (Py_ssize_t)sizeof(int64_t))))
        goto done;
    scan = (Scan){.characters = table.buf, .out = (int64_t *)(void *)PyByteArray_AS_STRING(result)};
    Py_BEGIN_ALLOW_THREADS
    read_text(&scan, text);
    Py_END_ALLOW_THREADS
done:
    PyBuffer_Release(&table);
    return result;
}

/* -1 and an exception unless keys are a power of two and costs are two for each. */
static int check_slots(const Py_buffer *keys, const Py_buffer *costs)
{
    const uint64_t slots = (uint64_t)keys->len / 8;
    if (slots && !(slots & (slots - 1)) && costs->len == keys->len)
        return 0;
    PyErr_Format(PyExc_ValueError, "keys: a power of two and two costs for each are needed, %zd and %zd given",
                 keys->len / 8, costs->len / 4);
    return -1;
}

/* score(text, table, keys, costs) -> (cost in 1/65536 bit, words). */
static PyObject *score(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}, {"keys", INT64, 0}, {"costs", INT32, 0}};
    PyObject *text, *given[3], *result = NULL;
    Py_buffer views[3];
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &text, &given[0], &given[1], &given[2]) || check_text(text) < 0
        || take_arrays(arrays, given, views, 3) < 0)
        return NULL;
    if (check_table(&views[0]) < 0 || check_slots(&views[1], &views[2]) < 0)
        goto done;
    Scan scan = {.characters = views[0].buf, .keys = views[1].buf, .costs = views[2].buf, .a = START, .b = START};
    scan.mask = (uint64_t)views[1].len / 8 - 1;
    Py_BEGIN_ALLOW_THREADS
    scan.before = find(&scan, pair_key(START, START));
    scan.single_before = find(&scan, START);
    read_text(&scan, text);
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("LL", (long long)scan.cost, (long long)scan.words);
done:
    release_arrays(views, 3);
    return result;
}

/* insert(given, found, keys, costs): put the keys `given` with their costs `found` into an empty table; of equal keys
 * the first stays. */
static PyObject *insert(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"given", INT64, 0}, {"found", INT32, 0}, {"keys", INT64, WRITTEN},
                                   {"costs", INT32, WRITTEN}};
    PyObject *given[4];
    Py_buffer views[4];
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &given[0], &given[1], &given[2], &given[3])
        || take_arrays(arrays, given, views, 4) < 0)
        return NULL;
    int64_t *keys = views[2].buf;
    int32_t *costs = views[3].buf;
    const int64_t *from = views[0].buf;
    const int32_t *with = views[1].buf;
    const Py_ssize_t count = views[0].len / 8;
    int fine = check_slots(&views[2], &views[3]) == 0;
    if (fine && (views[1].len != views[0].len || views[0].len >= views[2].len)) {
        PyErr_SetString(PyExc_ValueError, "given: fewer keys than slots and two costs for each are needed");
        fine = 0;
    }
    if (fine) {
        const uint64_t mask = (uint64_t)views[2].len / 8 - 1;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++) {
            uint64_t slot = (uint64_t)from[i] & mask, step = 0;
            while (step++ <= mask && keys[slot] && keys[slot] != from[i])
                slot = (slot + 1) & mask;
            if (keys[slot])
                continue;
            keys[slot] = from[i];
            costs[2 * slot] = with[2 * i];
            costs[2 * slot + 1] = with[2 * i + 1];
        }
        Py_END_ALLOW_THREADS
    }
    release_arrays(views, 4);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"word_keys", word_keys, METH_VARARGS, "word_keys(text, table) -> int64 keys of the words"},
    {"score", score, METH_VARARGS, "score(text, table, keys, costs) -> (cost in 1/65536 bit, words)"},
    {"insert", insert, METH_VARARGS, "insert(given, found, keys, costs): fill a table"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ngram_costs", "Word n-grams and their costs.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_ngram_costs(void) { return PyModuleDef_Init(&module); }
