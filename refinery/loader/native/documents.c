/* Where documents start inside ranges of a shard's tokens, from the offsets in its index.
 *
 * loader/samples.py documents the use.
 *
 * Cost: a binary search per range, then one step per document found; 8 bytes of memory per document found. Safety:
 * arguments are checked at entry. All numbers may be any; that offsets ascend is not checked, which would cost more
 * than the search: ones that do not give other starts, and nothing is read or written outside the arrays. */

#include "kernel.h"

/* The first place whose offset is `value` or more. */
static Py_ssize_t find_first(const int64_t *offsets, Py_ssize_t size, int64_t value)
{
    Py_ssize_t low = 0;
    while (size > 0) {
        const Py_ssize_t half = size / 2;
        if (offsets[low + half] < value) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return low;
}

/* find(offsets, begins, stops, shifts) -> (starts, counts): for each range, in order, the offsets from begin to before
 * stop plus its shift, and how many there are; two bytearrays of int64. Offsets ascend. */
static PyObject *find(PyObject *module, PyObject *args)
{
    enum { OFFSETS, BEGINS, STOPS, SHIFTS, BUFFERS };
    static const Array arrays[] = {
        {"offsets", INT64, 0}, {"begins", INT64, 0}, {"stops", INT64, 0}, {"shifts", INT64, 0},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *starts = NULL, *counts = NULL, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &given[OFFSETS], &given[BEGINS], &given[STOPS], &given[SHIFTS])
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    if (b[STOPS].len != b[BEGINS].len || b[SHIFTS].len != b[BEGINS].len) {
        PyErr_Format(PyExc_ValueError, "begins, stops and shifts: %zd, %zd and %zd values given, as many of each are "
                     "needed", b[BEGINS].len / 8, b[STOPS].len / 8, b[SHIFTS].len / 8);
        goto done;
    }
    const int64_t *offsets = b[OFFSETS].buf, *begins = b[BEGINS].buf, *stops = b[STOPS].buf, *shifts = b[SHIFTS].buf;
    const Py_ssize_t documents = b[OFFSETS].len / 8, ranges = b[BEGINS].len / 8;
    Py_ssize_t total = 0, used = 0;
    if (!(counts = PyByteArray_FromStringAndSize(NULL, ranges * 8)))
        goto done;
    int64_t *count = (int64_t *)(void *)PyByteArray_AS_STRING(counts); /* on the heap, so aligned */
    /* The first place of each range is kept in `count` until its documents are copied. */
    for (Py_ssize_t i = 0; i < ranges; i++) {
        const Py_ssize_t first = find_first(offsets, documents, begins[i]);
        Py_ssize_t end = first;
        while (end < documents && offsets[end] < stops[i])
            end++;
        if (end - first > PY_SSIZE_T_MAX / 8 - total) {
            PyErr_NoMemory();
            goto done;
        }
        total += end - first;
        count[i] = first;
    }
    if (!(starts = PyByteArray_FromStringAndSize(NULL, total * 8)))
        goto done;
    int64_t *start = (int64_t *)(void *)PyByteArray_AS_STRING(starts);
    for (Py_ssize_t i = 0; i < ranges; i++) {
        const Py_ssize_t first = (Py_ssize_t)count[i], before = used;
        for (Py_ssize_t at = first; at < documents && offsets[at] < stops[i] && used < total; at++)
            start[used++] = (int64_t)((uint64_t)offsets[at] + (uint64_t)shifts[i]); /* defined for any shift */
        count[i] = used - before;
    }
    result = PyTuple_Pack(2, starts, counts);
done:
    Py_XDECREF(starts);
    Py_XDECREF(counts);
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"find", find, METH_VARARGS, "find(offsets, begins, stops, shifts) -> (int64 starts, int64 counts)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "documents", "Documents inside ranges of tokens.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_documents(void) { return PyModuleDef_Init(&module); }
