/* Where the tokens of packed rows are: pieces of shards, from the layouts that layouts.c has written.
 *
 * Cost: some 15 ns for each piece, and two binary searches for each row. Safety: bounds are checked at entry, every number
 * of a layout and every token when it is read. The GIL is released: nobody may write to the ring meanwhile. */

#include "kernel.h"

/* The last of ascending values that is not above `value`; the first one is not. */
static int64_t last_not_above(const int64_t *values, int64_t count, int64_t value)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(values[middle] <= value ? &low : &high) = middle;
    }
    return low;
}

typedef struct {
    const int64_t *row_bounds, *piece_bounds, *slots, *starts, *parts;
    const int32_t *ring, *reads;
    int64_t blocks, size, pieces, shards; /* of the ring; in all; of parts */
} Table;

/* The pieces of row `row`, as [which, part, first token in it, tokens, place], from `out` on, NULL to count them alone.
 * Returns their number, -1 for a layout that is none, and for more pieces than `room`. */
static int64_t find_row(const Table *t, int64_t row, int64_t which, int64_t *out, int64_t room)
{
    const int64_t block = last_not_above(t->row_bounds, t->blocks + 1, row), slot = t->slots[block];
    const int64_t rows = t->row_bounds[block + 1] - t->row_bounds[block], inside = row - t->row_bounds[block];
    const int64_t base = t->piece_bounds[block], most = t->piece_bounds[block + 1] - base;
    int64_t place = 0, found = 0;
    if (slot < 0 || base < 0 || most < 0 || most > t->pieces - base || rows < 0 || slot > t->size - rows - 1 - most)
        return -1;
    const int32_t *layout = t->ring + slot, *order = layout + rows + 1;
    if (layout[inside] < 0 || layout[inside + 1] < layout[inside] || layout[inside + 1] > most)
        return -1;
    for (int64_t i = layout[inside]; i < layout[inside + 1]; i++) {
        if (order[i] < 0 || order[i] >= most)
            return -1;
        int64_t start = t->starts[base + order[i]], left = t->reads[base + order[i]];
        const int64_t total = t->parts[t->shards];
        if (start < 0 || left < 1 || start >= total || left > total - start)
            return -1;
        for (int64_t part = last_not_above(t->parts, t->shards + 1, start); left > 0; part++) {
            const int64_t size = left < t->parts[part + 1] - start ? left : t->parts[part + 1] - start;
            if (size < 1)
                continue; /* a shard without tokens */
            if (found == room)
                return -1;
            if (out) {
                const int64_t piece[5] = {which, part, start - t->parts[part], size, place};
                memcpy(out + 5 * found, piece, sizeof piece);
            }
            found++, start += size, left -= size, place += size;
        }
    }
    return found;
}

/* find(rows, row_bounds, piece_bounds, slots, layouts, starts, reads, parts) -> bytearray of int64 [pieces, 5]: of the
 * pieces of these rows, in order: place in `rows`, part, first token in it, tokens, and place in the row. -1: no row.
 * slots: of each block, where its layout is in the ring. parts: where each shard begins, and the end. */
static PyObject *find(PyObject *module, PyObject *args)
{
    enum { ROWS, ROW_BOUNDS, PIECE_BOUNDS, SLOTS, RING, STARTS, READS, PARTS, BUFFERS };
    static const Array arrays[] = {
        {"rows", INT64, 0}, {"row_bounds", INT64, 0}, {"piece_bounds", INT64, 0}, {"slots", INT64, 0},
        {"layouts", INT32, 0}, {"starts", INT64, 0}, {"reads", INT32, 0}, {"parts", INT64, 0},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &given[ROWS], &given[ROW_BOUNDS], &given[PIECE_BOUNDS], &given[SLOTS],
                          &given[RING], &given[STARTS], &given[READS], &given[PARTS])
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const Table t = {
        .row_bounds = b[ROW_BOUNDS].buf, .piece_bounds = b[PIECE_BOUNDS].buf, .slots = b[SLOTS].buf,
        .starts = b[STARTS].buf, .parts = b[PARTS].buf, .ring = b[RING].buf, .reads = b[READS].buf,
        .blocks = b[SLOTS].len / 8, .size = b[RING].len / 4, .pieces = b[READS].len / 4, .shards = b[PARTS].len / 8 - 1,
    };
    const int64_t *rows = b[ROWS].buf, count = b[ROWS].len / 8;
    int64_t total = 0, wrong = -1;
    if (b[STARTS].len / 8 != t.pieces || b[ROW_BOUNDS].len / 8 != t.blocks + 1
        || b[PIECE_BOUNDS].len / 8 != t.blocks + 1 || t.shards < 0) {
        PyErr_SetString(PyExc_ValueError, "starts and reads, row_bounds, piece_bounds and slots, parts: sizes that fit "
                                          "each other are needed");
        goto done;
    }
    if (check_ascending("row_bounds", t.row_bounds, t.blocks + 1, t.row_bounds[t.blocks], INT64_MAX) < 0
        || check_ascending("parts", t.parts, t.shards + 1, t.parts[t.shards], INT64_MAX) < 0)
        goto done;
    for (int64_t i = 0; i < count; i++)
        if (check_range("rows", rows[i], -1, t.row_bounds[t.blocks] - 1) < 0)
            goto done;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < count && wrong < 0; i++) {
        const int64_t found = rows[i] < 0 ? 0 : find_row(&t, rows[i], i, NULL, INT64_MAX);
        wrong = found < 0 ? rows[i] : -1;
        total += found;
    }
    Py_END_ALLOW_THREADS
    if (wrong >= 0) {
        PyErr_Format(PyExc_ValueError, "layouts: none of the block of row %lld", (long long)wrong);
        goto done;
    }
    if (!(result = PyByteArray_FromStringAndSize(NULL, total * 40)))
        goto done;
    int64_t *out = (int64_t *)(void *)PyByteArray_AS_STRING(result); /* on the heap, so aligned */
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0, used = 0, found; i < count && wrong < 0; i++, used += found) {
        found = rows[i] < 0 ? 0 : find_row(&t, rows[i], i, out + 5 * used, total - used);
        wrong = found < 0 ? rows[i] : -1; /* never, unless another thread writes to the arrays */
    }
    Py_END_ALLOW_THREADS
    if (wrong >= 0) {
        PyErr_SetString(PyExc_ValueError, "layouts: written to while it was read");
        Py_CLEAR(result);
    }
done:
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"find", find, METH_VARARGS,
     "find(rows, row_bounds, piece_bounds, slots, layouts, starts, reads, parts) -> int64 [pieces, 5]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "row_pieces", "Where the tokens of packed rows are.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_row_pieces(void) { return PyModuleDef_Init(&module); }
