/* Counts of a kernel as Python has them. */

#ifndef COUNTS_OBJECT_H
#define COUNTS_OBJECT_H

#include <Python.h>
#include <stdint.h>

/* A structseq whose first fields are the uint64 of a struct of `size` bytes; NULL with an exception. */
static PyObject *as_counts(PyTypeObject *type, const void *counts, size_t size)
{
    PyObject *found = PyStructSequence_New(type);
    for (size_t i = 0; found && i < size / sizeof(uint64_t); i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(((const uint64_t *)counts)[i]);
        if (count)
            PyStructSequence_SET_ITEM(found, (Py_ssize_t)i, count);
        else
            Py_CLEAR(found);
    }
    return found;
}

#endif
