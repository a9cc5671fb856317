/* Labels, loss mask, positions, document numbers and cu_seqlens of a batch, in one pass over the runs of its rows.
 *
 * A run is what a row holds of a document, or its padding. loader/masks.py documents every array.
 *
 * Cost: one pass over the batch and the starts, no memory. Rows and runs are written in order, since the end of a run may
 * be written over the beginning of the next. Safety: sizes and types are checked at entry; starts, counts
 * and valid while they are read, so that wrong ones raise ValueError (outputs are half written then). The GIL is
 * released. */

#include "kernel.h"

#define IGNORE (-100) /* as in loader/masks.py */
#define PADDING (-1)

enum { CROSS_DOCUMENT = 1, EOS = 2, COPIED = 4 }; /* labels that are not learned; labels hold the tokens already */

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

typedef int32_t Line __attribute__((vector_size(LINE)));

static const Line COUNT = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* first + step i for each i of a run of `size`: its positions (0, 1), or its document's number (number, 0). Whole cache
 * lines are written: what that writes behind the run, less than a line, is of the next one, which is written later.
 * room: values from `out` to the array's end. */
VECTORISED static void write_run(int32_t *out, int64_t size, int64_t room, int32_t first, int32_t step)
{
    enum { WIDTH = LINE / 4 };
    int64_t i = 0;
    if (room >= 2 * WIDTH) {
        Line values = COUNT * step + first;
        memcpy(out, &values, LINE);
        i = to_line(out) / 4;
        for (values += (int32_t)i * step; i < size && i + WIDTH <= room; i += WIDTH) {
            ask_ahead(out + i);
            *(Line *)(void *)(out + i) = values;
            values += WIDTH * step;
        }
    }
    for (; i < size; i++)
        out[i] = first + step * (int32_t)i;
}

/* The run [begin, stop) of a row whose first token is number `base` of the batch. */
static void add_run(Batch *x, int64_t base, int64_t begin, int64_t stop, int32_t document)
{
    const int64_t at = base + begin, size = stop - begin, room = x->rows * x->length - at;
    if (x->positions)
        write_run(x->positions + at, size, room, 0, 1);
    if (x->documents)
        write_run(x->documents + at, size, room, document, 0);
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
    if (x->labels && !(x->options & COPIED))
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

/* Whether `size` elements of `width` bytes are there. An array that was not asked for needs none. */
static int fits(const Py_buffer *buffer, int64_t size, int64_t width)
{
    return !buffer->obj || buffer->len == size * width;
}

/* fill(tokens, starts, counts, valid, options, eos, labels, loss, positions, documents, bounds) -> (runs, longest) */
static PyObject *fill(PyObject *module, PyObject *args)
{
    enum { TOKENS, STARTS, COUNTS, VALID, LABELS, LOSS, POSITIONS, DOCUMENTS, BOUNDS, BUFFERS };
    static const Array arrays[] = {
        {"tokens", INT64, 0}, {"starts", INT64, 0}, {"counts", INT64, 0}, {"valid", INT64, 0},
        {"labels", INT64, WRITTEN | OPTIONAL}, {"loss", FLAG, WRITTEN | OPTIONAL},
        {"positions", INT32, WRITTEN | OPTIONAL}, {"documents", INT32, WRITTEN | OPTIONAL},
        {"bounds", INT32, WRITTEN | OPTIONAL},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *options, *eos, *result = NULL;
    Batch x = {0};
    int64_t chosen;
    int good = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOO", &given[TOKENS], &given[STARTS], &given[COUNTS], &given[VALID], &options,
                          &eos, &given[LABELS], &given[LOSS], &given[POSITIONS], &given[DOCUMENTS], &given[BOUNDS])
        || read_integer(options, "options", 0, CROSS_DOCUMENT | EOS | COPIED, &chosen) < 0
        || read_integer(eos, "eos", INT64_MIN, INT64_MAX, &x.eos) < 0 || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    x.options = (int)chosen;
    x.rows = b[COUNTS].len / 8;
    x.total = b[STARTS].len / 8;
    x.length = x.rows ? b[TOKENS].len / 8 / x.rows - 1 : 0;
    if (x.length < 1 || x.length > INT32_MAX / x.rows || !fits(&b[TOKENS], x.rows * (x.length + 1), 8) ||
        !fits(&b[STARTS], x.total, 8) || !fits(&b[COUNTS], x.rows, 8) || !fits(&b[VALID], x.rows, 8) ||
        !fits(&b[LABELS], x.rows * x.length, 8) || !fits(&b[LOSS], x.rows * x.length, 1) ||
        !fits(&b[POSITIONS], x.rows * x.length, 4) || !fits(&b[DOCUMENTS], x.rows * x.length, 4) ||
        !fits(&b[BOUNDS], x.total + 2 * x.rows + 1, 4)) {
        PyErr_SetString(PyExc_ValueError, "tokens [B, S + 1], starts, counts [B], valid [B], outputs [B, S] and bounds "
                                          "[starts + 2 B + 1] of sizes that fit each other are needed");
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
    release_arrays(b, BUFFERS);
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
