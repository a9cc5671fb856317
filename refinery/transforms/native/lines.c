/* A 64-bit hash of every line of Python strings, straight from their characters.
 *
 * line -> lower-cased words -> 64-bit word hashes -> rolling hash of them all -> fmix64, with the number of words in
 * the lowest bits. transforms/dedup/cut_lines.py documents every step.
 *
 * Cost: two passes, linear in the characters whatever they are (there is no table of words); 8 bytes per line of
 * memory. Safety: arguments are checked at entry; the entries of `table` may be any numbers. The GIL is released while
 * characters are read. The hash is stored: fixed, or under a secret key (word_key.h). */

#include "word_key.h"

#define WORDS_MASK 15u /* the lowest bits hold the number of words, up to this */

INLINE uint64_t finish(uint64_t rolling, uint64_t words)
{
    if (words == 0)
        return 0;
    return (fmix64(rolling) & ~(uint64_t)WORDS_MASK) | (words < WORDS_MASK ? words : WORDS_MASK);
}

/* Writes the hash of every line; returns the place behind the last one. */
INLINE uint64_t *scan(const uint32_t *table, const WordKey *key, int kind, const void *data, Py_ssize_t length,
                      uint64_t *out)
{
    uint64_t hash = key->seed, rolling = 0, words = 0;
    uint32_t inside = 0; /* 0, LETTER or SOLITARY: what the open word began with */
    for (Py_ssize_t i = 0; i < length; i++) {
        const uint32_t c = code_point(kind, data, i), entry = table[c], lower = entry & 0xFFFFFF, type = entry >> 24;
        if (type == LETTER && inside != SOLITARY) {
            hash = step(key, hash, lower);
            inside = LETTER;
            continue;
        }
        if (type == MARK) {
            if (inside)
                hash = step(key, hash, lower);
            continue;
        }
        if (inside) {
            rolling = rolling * ROLL + fmix64(hash ^ key->mask);
            words++;
        }
        hash = type == BORDER ? key->seed : step(key, key->seed, lower);
        inside = type;
        if (c == '\n') {
            *out++ = finish(rolling, words);
            rolling = words = 0;
        }
    }
    if (inside) {
        rolling = rolling * ROLL + fmix64(hash ^ key->mask);
        words++;
    }
    *out++ = finish(rolling, words);
    return out;
}

static uint64_t *hash_text(const uint32_t *table, const WordKey *key, PyObject *text, uint64_t *out)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        return scan(table, key, PyUnicode_1BYTE_KIND, data, length, out);
    case PyUnicode_2BYTE_KIND:
        return scan(table, key, PyUnicode_2BYTE_KIND, data, length, out);
    default:
        return scan(table, key, PyUnicode_4BYTE_KIND, data, length, out);
    }
}

/* Newlines of `text`, plus one. */
static int64_t count_lines(PyObject *text)
{
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    const int kind = PyUnicode_KIND(text);
    int64_t lines = 1;
    if (kind == PyUnicode_1BYTE_KIND)
        for (Py_ssize_t i = 0; i < length; i++)
            lines += ((const Py_UCS1 *)data)[i] == '\n';
    else if (kind == PyUnicode_2BYTE_KIND)
        for (Py_ssize_t i = 0; i < length; i++)
            lines += ((const Py_UCS2 *)data)[i] == '\n';
    else
        for (Py_ssize_t i = 0; i < length; i++)
            lines += ((const Py_UCS4 *)data)[i] == '\n';
    return lines;
}

/* hash_lines(texts, table, key=b"") -> (hashes, offsets): uint64 hashes of all lines of all texts, and int64 places
 * where the lines of each text begin, with the end as one more. */
static PyObject *hash_lines(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT32, 0}};
    PyObject *given, *buffer, *texts = NULL, *hashes = NULL, *offsets = NULL, *result = NULL;
    Py_buffer table;
    KeyBytes given_key = {"", 0};
    WordKey key;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO|y#", &given, &buffer, &given_key.bytes, &given_key.size)
        || take_arrays(arrays, &buffer, &table, 1) < 0)
        return NULL;
    if (read_word_key(&given_key, &key) < 0 || check_table(&table) < 0 || !(texts = PySequence_Tuple(given))
        || check_texts(texts) < 0)
        goto done;
    const Py_ssize_t count = PyTuple_GET_SIZE(texts);
    offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int64_t));
    if (!offsets)
        goto done;
    char *places = PyBytes_AS_STRING(offsets); /* bytes of an object need not be aligned: memcpy */
    int64_t total = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        memcpy(places + i * (Py_ssize_t)sizeof(int64_t), &total, sizeof(int64_t));
        total += count_lines(PyTuple_GET_ITEM(texts, i));
    }
    memcpy(places + count * (Py_ssize_t)sizeof(int64_t), &total, sizeof(int64_t));
    Py_END_ALLOW_THREADS
    if (total > PY_SSIZE_T_MAX / 16) {
        PyErr_NoMemory();
        goto done;
    }
    hashes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)total * (Py_ssize_t)sizeof(uint64_t));
    if (!hashes)
        goto done;
    uint64_t *out = (uint64_t *)(void *)PyByteArray_AS_STRING(hashes); /* on the heap, so aligned */
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++)
        out = hash_text(table.buf, &key, PyTuple_GET_ITEM(texts, i), out);
    Py_END_ALLOW_THREADS
    result = PyTuple_Pack(2, hashes, offsets);
done:
    Py_XDECREF(texts);
    Py_XDECREF(hashes);
    Py_XDECREF(offsets);
    PyBuffer_Release(&table);
    return result;
}

static PyMethodDef methods[] = {
    {"hash_lines", hash_lines, METH_VARARGS, "hash_lines(texts, table, key=b\"\") -> (uint64 hashes, int64 offsets)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "lines", "Hashes of the lines of texts.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_lines(void) { return PyModuleDef_Init(&module); }
