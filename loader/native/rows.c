/* Rows of tokens from memory maps into a batch, widened to int64.
 *
 * The rows of a shuffled batch lie far apart, where the processor cannot guess the next one: it is asked for, line by
 * line, while the row before it is widened. The GIL is released, since a page may have to come from the disk. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokens are little-endian"
#endif

#include "vectorised.h"

#define LINE 64 /* bytes of a cache line; elsewhere too many or too few are asked for, which costs time alone */

/* Widens `size` tokens; `next`: as many that come after, or NULL. */
#define WIDEN(name, type)                                                                                              \
    VECTORISED static void name(const type *restrict row, const type *restrict next, Py_ssize_t size,                  \
                                int64_t *restrict out)                                                                 \
    {                                                                                                                  \
        enum { STEP = LINE / sizeof(type) };                                                                           \
        Py_ssize_t i = 0;                                                                                              \
        for (; i + STEP <= size; i += STEP) {                                                                          \
            if (next)                                                                                                  \
                __builtin_prefetch(next + i);                                                                          \
            for (int k = 0; k < STEP; k++)                                                                             \
                out[i + k] = row[i + k];                                                                               \
        }                                                                                                              \
        if (next && i < size)                                                                                          \
            __builtin_prefetch(next + i);                                                                              \
        for (; i < size; i++)                                                                                          \
            out[i] = row[i];                                                                                           \
    }

WIDEN(widen_uint16, uint16_t)
WIDEN(widen_int32, int32_t)

static void widen(const Py_buffer *row, const Py_buffer *next, Py_ssize_t size, int64_t *out)
{
    const void *same = row->itemsize == next->itemsize ? next->buf : NULL;
    if (row->itemsize == 4)
        widen_int32(row->buf, same, size, out);
    else
        widen_uint16(row->buf, same, size, out);
}

/* copy(rows, out): row i, uint16 or int32, becomes the i-th of as many equal parts of `out`, int64. */
static PyObject *copy(PyObject *module, PyObject *args)
{
    PyObject *given, *rows = NULL, *result = NULL;
    Py_buffer out = {0}, *row = NULL;
    Py_ssize_t count, size, held = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ow*", &given, &out))
        return NULL;
    if (!(rows = PySequence_Tuple(given)))
        goto done;
    count = PyTuple_GET_SIZE(rows);
    size = count ? out.len / 8 / count : 0;
    if (out.itemsize != 8 || out.len != count * size * 8 || (uintptr_t)out.buf % 8) {
        PyErr_SetString(PyExc_ValueError, "out: an aligned int64 array of as many tokens as the rows is needed");
        goto done;
    }
    if (!(row = calloc((size_t)count + 1, sizeof(Py_buffer)))) {
        PyErr_NoMemory();
        goto done;
    }
    for (; held < count; held++) {
        Py_buffer *b = &row[held];
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(rows, held), b, PyBUF_SIMPLE) < 0)
            goto done;
        if ((b->itemsize != 4 && b->itemsize != 2) || b->len != b->itemsize * size ||
            (uintptr_t)b->buf % (uintptr_t)b->itemsize) {
            PyErr_Format(PyExc_ValueError, "rows: %zd bytes in items of %zd in row %zd given, aligned uint16 or int32 "
                         "of %zd tokens are allowed", b->len, b->itemsize, held, size);
            held++; /* this one too */
            goto done;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) /* behind the last row is an empty one */
        widen(&row[i], &row[i + 1], size, (int64_t *)out.buf + i * size);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    while (held)
        PyBuffer_Release(&row[--held]);
    free(row);
    Py_XDECREF(rows);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef methods[] = {
    {"copy", copy, METH_VARARGS, "copy(rows, out) -> None"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "rows", "Rows of tokens into a batch.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_rows(void) { return PyModuleDef_Init(&module); }
