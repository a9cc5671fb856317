/* Rows of tokens from memory maps into a batch, widened to int64.
 *
 * The rows of a shuffled batch are far apart in memory, where the processor cannot guess the next one: it is asked for,
 * line by line, while the row before it is widened.
 *
 * Cost: one pass, memory for the list of rows. Safety: every row is checked at entry, for type, size and alignment, and
 * none may share memory with the batch. The GIL is released, since a page may have to come from the disk. */

#include <stdlib.h>

#include "kernel.h"

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
WIDEN(widen_int64, int64_t) /* no wider, copied: files of other tools */

static void widen(const Py_buffer *row, const Py_buffer *next, Py_ssize_t size, int64_t *out)
{
    const void *same = row->itemsize == next->itemsize ? next->buf : NULL;
    if (row->itemsize == 8)
        widen_int64(row->buf, same, size, out);
    else if (row->itemsize == 4)
        widen_int32(row->buf, same, size, out);
    else
        widen_uint16(row->buf, same, size, out);
}

/* Fills `view` from row number `number`. -1 and an exception unless it holds `size` tokens beside `out`. */
static int take_row(PyObject *given, Py_ssize_t number, Py_ssize_t size, const Py_buffer *out, Py_buffer *view)
{
    static const char SENTENCE[] = "rows: %zd bytes in items of %zd in row %zd given%s, contiguous, aligned uint16, "
                                   "int32 or int64 of %zd tokens are allowed";
    if (PyObject_GetBuffer(given, view, PyBUF_FULL_RO) < 0)
        return -1;
    if ((has_type(view, UINT16) || has_type(view, INT32) || has_type(view, INT64)) && view->len == view->itemsize * size
        && PyBuffer_IsContiguous(view, 'C') && (!size || (uintptr_t)view->buf % (uintptr_t)view->itemsize == 0)
        && !overlap(view, out))
        return 0;
    PyErr_Format(PyExc_ValueError, SENTENCE, view->len, view->itemsize, number,
                 overlap(view, out) ? ", inside out" : "", size);
    PyBuffer_Release(view);
    return -1;
}

/* copy(rows, out): row i, uint16, int32 or int64, becomes the i-th of as many equal parts of `out`, int64. */
static PyObject *copy(PyObject *module, PyObject *args)
{
    static const Array batch = {"out", INT64, WRITTEN};
    PyObject *given, *target, *rows = NULL, *result = NULL;
    Py_buffer out, *row = NULL;
    Py_ssize_t count, size, held = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given, &target) || take_array(&batch, target, &out) < 0)
        return NULL;
    if (!(rows = PySequence_Tuple(given)))
        goto done;
    count = PyTuple_GET_SIZE(rows);
    size = count ? out.len / 8 / count : 0;
    if (out.len != count * size * 8) {
        PyErr_Format(PyExc_ValueError, "out: %zd int64 values given, as many for each of %zd rows are needed",
                     out.len / 8, count);
        goto done;
    }
    if (!(row = calloc((size_t)count + 1, sizeof(Py_buffer)))) {
        PyErr_NoMemory();
        goto done;
    }
    for (; held < count; held++)
        if (take_row(PyTuple_GET_ITEM(rows, held), held, size, &out, &row[held]) < 0)
            goto done;
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
