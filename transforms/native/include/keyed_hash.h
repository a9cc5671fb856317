/* Hashes with a random key, for tables whose keys come out of documents.
 *
 * Whoever writes a document may choose its words so that a fixed hash sends them all to one slot; a table with linear
 * probing then takes quadratic time. Slots are therefore chosen by a hash whose key is drawn once per process and never
 * leaves it. Nothing that a kernel returns depends on the key: tables compare whole keys, and hand out numbers in order
 * of insertion. Where a keyed hash stands for a name (htmlscan), two names share one of 63 bits by chance alone.
 *
 * slot_hash is two multiplications folded from 128 bits (the construction of wyhash), as cheap as the fixed mixers that
 * it replaces. It need not resist somebody who sees its values: nobody outside the process does. siphash is
 * SipHash-1-3 (Aumasson and Bernstein 2012, with the rounds of CPython's and Rust's own tables) for strings. */

#ifndef REFINERY_KEYED_HASH_H
#define REFINERY_KEYED_HASH_H

#include "kernel.h"

typedef struct {
    uint64_t a, b, c, d;
} HashKey;

/* Draws a key from the operating system, unless it is drawn. -1 and an exception if there is none. */
CHECK int draw_key(HashKey *key)
{
    if (key->b)
        return 0;
    PyObject *os = PyImport_ImportModule("os");
    PyObject *bytes = os ? PyObject_CallMethod(os, "urandom", "n", (Py_ssize_t)sizeof *key) : NULL;
    int good = bytes && PyBytes_Check(bytes) && PyBytes_GET_SIZE(bytes) == (Py_ssize_t)sizeof *key;
    if (good)
        memcpy(key, PyBytes_AS_STRING(bytes), sizeof *key);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "os.urandom gave no bytes");
    key->b |= 1; /* multipliers: odd, and never 0 */
    key->d |= 1;
    Py_XDECREF(bytes);
    Py_XDECREF(os);
    return good ? 0 : -1;
}

INLINE uint64_t fold(uint64_t x, uint64_t y)
{
    const unsigned __int128 product = (unsigned __int128)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A hash of a number; take its low bits as a slot. */
INLINE uint64_t slot_hash(const HashKey *key, uint64_t x)
{
    return fold(fold(x ^ key->a, key->b) ^ key->c, key->d);
}

#define SIP_ROUND(p, q, r, s)                                                                                          \
    do {                                                                                                               \
        p += q, r += s;                                                                                                \
        q = (q << 13 | q >> 51) ^ p, s = (s << 16 | s >> 48) ^ r;                                                      \
        p = p << 32 | p >> 32;                                                                                         \
        r += q, p += s;                                                                                                \
        q = (q << 17 | q >> 47) ^ r, s = (s << 21 | s >> 43) ^ p;                                                      \
        r = r << 32 | r >> 32;                                                                                         \
    } while (0)

/* Eight bytes at any address. */
INLINE uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The last 0 to 7 bytes of a string, in the low bytes of a word. */
INLINE uint64_t load_rest(const uint8_t *bytes, size_t size)
{
    const size_t rest = size % 8;
    uint64_t word = 0;
    if (rest && size >= 8)
        return load_word(bytes + size - 8) >> (64 - 8 * rest);
    for (size_t i = 0; i < rest; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

/* The eight bytes of a word with 'A' to 'Z' in lower case. */
INLINE uint64_t lower_word(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, seven = word & 0x7F * ones;
    const uint64_t upper = (seven + (0x80 - 'A') * ones) ^ (seven + (0x7F - 'Z') * ones);
    return word | (upper & ~word & 0x80 * ones) >> 2;
}

/* SipHash-1-3 of `size` bytes; with `fold_case`, of these with 'A' to 'Z' in lower case. */
INLINE uint64_t siphash(const HashKey *key, const uint8_t *bytes, size_t size, const int fold_case)
{
    uint64_t p = key->a ^ 0x736f6d6570736575u, q = key->c ^ 0x646f72616e646f6du;
    uint64_t r = key->a ^ 0x6c7967656e657261u, s = key->c ^ 0x7465646279746573u;
    for (size_t i = 0; i <= size / 8; i++) {
        uint64_t word = i < size / 8 ? load_word(bytes + 8 * i) : load_rest(bytes, size);
        word = fold_case ? lower_word(word) : word;
        word |= i < size / 8 ? 0 : (uint64_t)size << 56;
        s ^= word;
        SIP_ROUND(p, q, r, s);
        p ^= word;
    }
    r ^= 0xff;
    SIP_ROUND(p, q, r, s);
    SIP_ROUND(p, q, r, s);
    SIP_ROUND(p, q, r, s);
    return p ^ q ^ r ^ s;
}

#endif
