/* Labels, loss mask, positions, document numbers and cu_seqlens of a batch, in one pass over the runs of its rows.
 *
 * A run is what a row holds of a document, or its padding. loader/masks.py documents every array. Starts, counts and
 * valid are checked while they are read, so that wrong ones raise ValueError. The GIL is released. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "vectorised.h"

#define IGNORE (-100) /* as in loader/masks.py */
#define PADDING (-1)

enum { CROSS_DOCUMENT = 1, EOS = 2 }; /* labels that are not learned */

typedef struct {
    const int64_t *tokens, *starts, *counts, *valid;
    int64_t total, rows, length; /* of starts; of the batch, [rows, length] */
    int64_t *labels;             /* this and what follows: NULL where not asked for */
    uint8_t *loss;
    int32_t *positions, *documents, *bounds;
    int options;
    int64_t eos;
    int64_t runs, longest; /* results */
} Batch;

/* Positions and document numbers of a run. */
VECTORISED static void write_run(int32_t *restrict positions, int32_t *restrict documents, int32_t size,
                                 int32_t document)
{
    if (positions)
        for (int32_t i = 0; i < size; i++)
            positions[i] = i;
    if (documents)
        for (int32_t i = 0; i < size; i++)
            documents[i] = document;
}

/* The run [begin, stop) of a row whose first token is number `base` of the batch. */
static void add_run(Batch *x, int64_t base, int64_t begin, int64_t stop, int32_t document)
{
    const int64_t at = base + begin, size = stop - begin;
    write_run(x->positions ? x->positions + at : NULL, x->documents ? x->documents + at : NULL, (int32_t)size,
              document);
    x->runs++;
    if (x->bounds)
        x->bounds[x->runs] = (int32_t)(base + stop);
    if (size > x->longest)
        x->longest = size;
}

/* The label at this place is not learned. */
static inline void ignore(const Batch *x, int64_t place)
{
    if (x->labels)
        x->labels[place] = IGNORE;
    if (x->loss)
        x->loss[place] = 0;
}

/* All arrays of a row. Returns 0 if its valid or its starts are wrong. */
static int fill_row(Batch *x, int64_t row, const int64_t *starts, int64_t count)
{
    const int64_t length = x->length, base = row * length, valid = x->valid[row];
    const int64_t *tokens = x->tokens + row * (length + 1);
    const int cross = x->options & CROSS_DOCUMENT, eos = x->options & EOS;
    if (valid < 0 || valid > length + 1)
        return 0;
    const int64_t inputs = valid < length ? valid : length;
    if (x->labels)
        memcpy(x->labels + base, tokens + 1, (size_t)length * sizeof(int64_t));
    if (x->loss)
        memset(x->loss + base, 1, (size_t)length);
    int64_t begin = 0, last = 0;
    int32_t document = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t start = starts[i];
        if (start < last || start > length)
            return 0;
        last = start;
        if (cross && start > 0)
            ignore(x, base + start - 1);
        if (eos && start > 1 && tokens[start - 1] == x->eos)
            ignore(x, base + start - 2);
        if (start > begin && start < inputs) { /* neither empty nor padding */
            add_run(x, base, begin, start, document++);
            begin = start;
        }
    }
    if (inputs > begin)
        add_run(x, base, begin, inputs, document);
    if (inputs < length)
        add_run(x, base, inputs, length, PADDING);
    if (eos && valid > 1 && tokens[valid - 1] == x->eos)
        ignore(x, base + valid - 2);
    for (int64_t i = valid > 0 ? valid - 1 : 0; i < length; i++)
        ignore(x, base + i);
    return 1;
}

static int fill_rows(Batch *x)
{
    int64_t used = 0;
    if (x->bounds)
        x->bounds[0] = 0;
    for (int64_t row = 0; row < x->rows; row++) {
        const int64_t count = x->counts[row];
        if (count < 0 || count > x->total - used || !fill_row(x, row, x->starts + used, count))
            return 0;
        used += count;
    }
    return used == x->total;
}

/* Whether `size` items of `width` bytes are there, and aligned. A buffer that was not asked for is. */
static int fits(const Py_buffer *buffer, int64_t size, int64_t width)
{
    return !buffer->obj || (buffer->itemsize == width && buffer->len == size * width &&
                            (uintptr_t)buffer->buf % (uintptr_t)width == 0);
}

/* fill(tokens, starts, counts, valid, options, eos, labels, loss, positions, documents, bounds) -> (runs, longest) */
static PyObject *fill(PyObject *module, PyObject *args)
{
    enum { TOKENS, STARTS, COUNTS, VALID, LABELS, LOSS, POSITIONS, DOCUMENTS, BOUNDS, BUFFERS };
    Py_buffer b[BUFFERS] = {{0}};
    PyObject *given[BUFFERS], *result = NULL;
    Batch x = {0};
    long long eos;
    int good = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOiLOOOOO", &given[TOKENS], &given[STARTS], &given[COUNTS], &given[VALID],
                          &x.options, &eos, &given[LABELS], &given[LOSS], &given[POSITIONS], &given[DOCUMENTS],
                          &given[BOUNDS]))
        return NULL;
    for (int i = 0; i < BUFFERS; i++) /* inputs are needed, outputs may be None */
        if ((i <= VALID || given[i] != Py_None) &&
            PyObject_GetBuffer(given[i], &b[i], i <= VALID ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0)
            goto done;
    x.eos = eos;
    x.rows = b[COUNTS].len / 8;
    x.total = b[STARTS].len / 8;
    x.length = x.rows ? b[TOKENS].len / 8 / x.rows - 1 : 0;
    if (x.length < 1 || x.length > INT32_MAX / x.rows || !fits(&b[TOKENS], x.rows * (x.length + 1), 8) ||
        !fits(&b[STARTS], x.total, 8) || !fits(&b[COUNTS], x.rows, 8) || !fits(&b[VALID], x.rows, 8) ||
        !fits(&b[LABELS], x.rows * x.length, 8) || !fits(&b[LOSS], x.rows * x.length, 1) ||
        !fits(&b[POSITIONS], x.rows * x.length, 4) || !fits(&b[DOCUMENTS], x.rows * x.length, 4) ||
        !fits(&b[BOUNDS], x.total + 2 * x.rows + 1, 4)) {
        PyErr_SetString(PyExc_ValueError, "aligned arrays of the sizes and types in masks.pyi are needed");
        goto done;
    }
    x.tokens = b[TOKENS].buf, x.starts = b[STARTS].buf, x.counts = b[COUNTS].buf, x.valid = b[VALID].buf;
    x.labels = b[LABELS].buf, x.loss = b[LOSS].buf;
    x.positions = b[POSITIONS].buf, x.documents = b[DOCUMENTS].buf, x.bounds = b[BOUNDS].buf;
    Py_BEGIN_ALLOW_THREADS
    good = fill_rows(&x);
    Py_END_ALLOW_THREADS
    if (good)
        result = Py_BuildValue("LL", (long long)x.runs, (long long)x.longest);
    else
        PyErr_SetString(PyExc_ValueError, "starts, counts, valid: ascending starts of 0 to S for each row, 0 to S + 1 "
                                          "valid tokens are needed");
done:
    for (int i = 0; i < BUFFERS; i++)
        PyBuffer_Release(&b[i]);
    return result;
}

static PyMethodDef methods[] = {
    {"fill", fill, METH_VARARGS,
     "fill(tokens, starts, counts, valid, options, eos, labels, loss, positions, documents, bounds) -> (runs, longest)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "masks", "What a batch says about its documents.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_masks(void) { return PyModuleDef_Init(&module); }
