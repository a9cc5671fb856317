/* What a word is, for every kernel that hashes words: the kinds of character, the hash of a word, reading a Python
 * string. transforms/signatures.py documents the rules and owns the table of characters. */

#ifndef REFINERY_WORDS_H
#define REFINERY_WORDS_H

#include "kernel.h"

#define CODE_POINTS 0x110000
#define WORD_SEED 0x243F6A8885A308D3u  /* first 64 bits of the fraction of pi */
#define WORD_PRIME 0x9E3779B97F4A7C15u /* 2^64 / golden ratio, odd */
#define ROLL 0xD1342543DE82EF95u       /* multiplier of the rolling hash (L'Ecuyer-style MCG constant, odd) */

enum { BORDER = 0, LETTER = 1, SOLITARY = 2, MARK = 3 }; /* kinds of character, bits 24.. of a table entry */

INLINE uint64_t fmix64(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDu;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 33);
}

INLINE uint32_t code_point(int kind, const void *data, Py_ssize_t i)
{
    if (kind == PyUnicode_1BYTE_KIND)
        return ((const Py_UCS1 *)data)[i];
    if (kind == PyUnicode_2BYTE_KIND)
        return ((const Py_UCS2 *)data)[i];
    return ((const Py_UCS4 *)data)[i];
}

/* -1 and a Python error unless `table`, uint32, has one entry per code point. */
INLINE int check_table(const Py_buffer *table)
{
    if (table->len == CODE_POINTS * (Py_ssize_t)sizeof(uint32_t))
        return 0;
    PyErr_Format(PyExc_ValueError, "table: 0x110000 uint32 entries are needed, %zd given", table->len / 4);
    return -1;
}

/* -1 and a Python error unless all of `texts`, a tuple, are strings that can be read without the GIL. */
INLINE int check_texts(PyObject *texts)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(texts); i++) {
        PyObject *text = PyTuple_GET_ITEM(texts, i);
        if (!PyUnicode_Check(text)) {
            PyErr_Format(PyExc_TypeError, "texts[%zd]: str is needed, %.100s given", i, Py_TYPE(text)->tp_name);
            return -1;
        }
        if (PyUnicode_READY(text) < 0)
            return -1;
    }
    return 0;
}

#endif
