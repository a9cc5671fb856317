/* Best-fit-decreasing packing of pieces into rows of one capacity, for many independent groups of pieces in a call.
 *
 * loader/packing/best_fit.py documents the algorithm, include/pack.h has it. Cost: as there. Safety: groups must ascend
 * and lengths be 1 to the capacity, which is checked before a piece is packed. */

#include "pack.h"

/* pack(lengths, groups, capacity, row_of, openers) -> number of rows. Pieces [groups[i], groups[i + 1]) are packed by
 * themselves. Written, int64 [pieces] each: the row of every piece, and of every row the piece that opened it. */
static PyObject *pack(PyObject *module, PyObject *args)
{
    enum { LENGTHS, GROUPS, ROW_OF, OPENERS, BUFFERS };
    static const Array arrays[] = {
        {"lengths", INT64, 0}, {"groups", INT64, 0}, {"row_of", INT64, WRITTEN}, {"openers", INT64, WRITTEN},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *limit, *result = NULL;
    Queues pieces = {0}, rows = {0};
    int64_t capacity, opened = 0;
    int made = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO", &given[LENGTHS], &given[GROUPS], &limit, &given[ROW_OF], &given[OPENERS])
        || read_integer(limit, "capacity", 1, MOST - 1, &capacity) < 0 || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const int64_t *lengths = b[LENGTHS].buf, *groups = b[GROUPS].buf;
    const int64_t count = b[LENGTHS].len / 8, last = b[GROUPS].len / 8 - 1;
    if (check_ascending("groups", groups, b[GROUPS].len / 8, count, INT64_MAX) < 0)
        goto done;
    if (b[ROW_OF].len != b[LENGTHS].len || b[OPENERS].len != b[LENGTHS].len) {
        PyErr_Format(PyExc_ValueError, "row_of and openers: %zd and %zd values given, %zd of each are needed",
                     b[ROW_OF].len / 8, b[OPENERS].len / 8, b[LENGTHS].len / 8);
        goto done;
    }
    for (int64_t i = 0; i < count; i++)
        if (check_range("lengths", lengths[i], 1, capacity) < 0)
            goto done;
    if (!make_queues(&pieces, capacity + 1, count) || !make_queues(&rows, capacity + 1, count)) {
        PyErr_NoMemory();
        goto done;
    }
    made = 1;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < last; i++)
        opened = pack_group(&pieces, &rows, lengths, lengths, groups[i], groups[i + 1], capacity, opened,
                            b[ROW_OF].buf, b[OPENERS].buf);
    Py_END_ALLOW_THREADS
done:
    free_queues(&pieces);
    free_queues(&rows);
    if (made)
        result = PyLong_FromLongLong(opened);
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS, "pack(lengths, groups, capacity, row_of, openers) -> number of rows"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "best_fit", "Best-fit-decreasing packing.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_best_fit(void) { return PyModuleDef_Init(&module); }
