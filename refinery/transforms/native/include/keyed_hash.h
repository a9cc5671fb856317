/* Hashes with a random key, for tables whose keys come out of documents.
 *
 * Whoever writes a document may choose its words so that a fixed hash sends them all to one slot; a table with linear
 * probing then takes quadratic time. Slots are therefore chosen by a hash whose key is drawn once per process and never
 * leaves it. Nothing that a kernel returns depends on the key: tables compare whole keys, and hand out numbers in order
 * of insertion.
 *
 * slot_hash is two multiplications folded from 128 bits (the construction of wyhash), as cheap as the fixed mixers that
 * it replaces. It need not resist somebody who sees its values: nobody outside the process does. */

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

#endif
