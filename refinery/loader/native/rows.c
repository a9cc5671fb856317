/* Rows of a batch, put together from pieces of shards' tokens and widened to int64.
 *
 * The pieces of a shuffled batch are far apart in memory, where the processor cannot guess the next one: it is asked
 * for, line by line, while the piece before it is widened.
 *
 * Cost: one pass, and a look at the pieces before it; memory for the shards that follow each other. Safety: arguments
 * are checked at entry, and every piece before the first is copied, for the shard, the row and the blocks that it is in.
 * No shard may share memory with the batch. The GIL is released, since a page may have to come from the disk. */

#include "widen.h"

enum { LOT = 4096 };   /* tokens that are copied twice at a time */
enum { FAR = 1 << 22 }; /* bytes of rows from which on no cache would keep what is written until it is read */

/* A piece: `count` tokens of a shard from `start` on, at `place` of a row. */
typedef struct {
    int64_t row, shard, start, count, place;
} Piece;

/* Neighbouring pieces of one shard, up to piece `stop`. tokens: all of the shard. flags: of each of its blocks, whether
 * it may be read; empty where all may be. */
typedef struct {
    Py_buffer tokens, flags;
    Py_ssize_t stop;
} Run;

static void release_run(Run *run)
{
    PyBuffer_Release(&run->tokens);
    PyBuffer_Release(&run->flags);
}

/* Fills `run` from the entry of `shard`. -1 and an exception, with nothing held, if there is none, or a wrong one. */
static int take_run(PyObject *shards, int64_t shard, int64_t block, const Py_buffer *out, Run *run)
{
    static const Array array = {"flags", FLAG, OPTIONAL};
    PyObject *number = PyLong_FromLongLong(shard), *entry;
    memset(run, 0, sizeof *run);
    if (!number)
        return -1;
    entry = PyDict_GetItemWithError(shards, number);
    Py_DECREF(number);
    if (!entry || !PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 2) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "shards: %s for shard %lld, a pair of its tokens and flags is needed",
                         entry ? "something else" : "nothing", (long long)shard);
        return -1;
    }
    if (PyObject_GetBuffer(PyTuple_GET_ITEM(entry, 0), &run->tokens, PyBUF_FULL_RO) < 0)
        return -1;
    const Py_buffer *view = &run->tokens;
    const int shared = overlap(view, out);
    if (!(has_type(view, UINT16) || has_type(view, INT32) || has_type(view, INT64)) || !PyBuffer_IsContiguous(view, 'C') || shared
        || (view->len && (uintptr_t)view->buf % (uintptr_t)view->itemsize)) {
        PyErr_Format(PyExc_ValueError, "shards: items of %zd bytes given for shard %lld%s, contiguous, aligned uint16, "
                     "int32 or int64 are needed", view->itemsize, (long long)shard, shared ? ", inside out" : "");
        goto wrong;
    }
    if (take_array(&array, PyTuple_GET_ITEM(entry, 1), &run->flags) < 0)
        goto wrong;
    const int64_t size = view->len / view->itemsize, blocks = size / block + (size % block != 0);
    if (run->flags.obj && run->flags.len < blocks) {
        PyErr_Format(PyExc_ValueError, "flags: %zd given for shard %lld, %lld are needed", run->flags.len,
                     (long long)shard, (long long)blocks);
        goto wrong;
    }
    return 0;
wrong:
    release_run(run);
    return -1;
}

/* Whether a piece is inside its shard, and inside a row of those from `first` on. */
static int fits(const Piece *piece, int64_t size, int64_t first, int64_t rows, int64_t width)
{
    return piece->count >= 0 && piece->start >= 0 && piece->start <= size && piece->count <= size - piece->start
           && piece->row >= first && piece->row - first < rows && piece->place >= 0 && piece->place <= width
           && piece->count <= width - piece->place;
}

/* Whether all blocks of a piece may be read. */
static int readable(const Piece *piece, const Py_buffer *flags, int64_t block)
{
    const uint8_t *flag = flags->buf;
    if (!flags->obj || !piece->count)
        return 1;
    for (int64_t i = piece->start / block; i <= (piece->start + piece->count - 1) / block; i++)
        if (!flag[i])
            return 0;
    return 1;
}

/* Takes the shards of all pieces and checks these. The first piece that may not be read yet, or `count`; -1 and an
 * exception for a wrong one. held: the runs that were taken. */
static Py_ssize_t take_runs(PyObject *shards, int64_t block, const Piece *pieces, Py_ssize_t count, int64_t first,
                            const Py_buffer *out, Run *runs, Py_ssize_t *held)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!i || pieces[i].shard != pieces[i - 1].shard) {
            if (take_run(shards, pieces[i].shard, block, out, &runs[*held]) < 0)
                return -1;
            *held += 1;
        }
        Run *run = &runs[*held - 1];
        run->stop = i + 1;
        if (!fits(&pieces[i], run->tokens.len / run->tokens.itemsize, first, out->shape[0], out->shape[1])) {
            PyErr_Format(PyExc_ValueError, "pieces: piece %zd is %lld tokens from %lld on, at %lld of row %lld; it has "
                         "to be inside its shard of %zd tokens and inside rows of %zd", i, (long long)pieces[i].count,
                         (long long)pieces[i].start, (long long)pieces[i].place, (long long)pieces[i].row,
                         run->tokens.len / run->tokens.itemsize, out->shape[1]);
            return -1;
        }
        if (!readable(&pieces[i], &run->flags, block))
            return i;
    }
    return count;
}

/* Widens tokens [start, start + count) of a shard; next, from, ahead: the tokens that come after them. far: as widen.h. */
static void widen(const Py_buffer *tokens, int64_t start, int64_t count, const Py_buffer *next, int64_t from,
                  int64_t ahead, int64_t *out, int far)
{
    const uint8_t *piece = (const uint8_t *)tokens->buf + start * tokens->itemsize;
    const uint8_t *following = (const uint8_t *)next->buf + from * tokens->itemsize;
    if (tokens->itemsize == 8)
        widen_int64((const int64_t *)(const void *)piece, count, (const int64_t *)(const void *)following, ahead, out, far);
    else if (tokens->itemsize == 4)
        widen_int32((const int32_t *)(const void *)piece, count, (const int32_t *)(const void *)following, ahead, out, far);
    else
        widen_uint16((const uint16_t *)(const void *)piece, count, (const uint16_t *)(const void *)following, ahead, out, far);
}

/* Copies all pieces, which are inside `out` and the tokens of their runs; to labels, unless NULL, a place earlier. */
static void copy_pieces(const Run *run, const Piece *pieces, Py_ssize_t count, int64_t first, const Py_buffer *out,
                        int64_t *labels)
{
    const int64_t width = out->shape[1];
    const int far = labels && out->len >= FAR;
    for (Py_ssize_t i = 0; i < count; i++) {
        run += i == run->stop;
        const Run *its = run + (i + 1 == run->stop); /* of the next piece */
        const Piece *piece = &pieces[i], *next = i + 1 < count ? piece + 1 : NULL;
        const int64_t row = piece->row - first, at = row * width + piece->place;
        const int64_t ahead = next && its->tokens.itemsize == run->tokens.itemsize ? next->count : 0;
        for (int64_t done = 0; done < piece->count; done += LOT) { /* so that the second reading is of near memory */
            const int64_t size = piece->count - done < LOT ? piece->count - done : LOT, start = piece->start + done;
            const int64_t some = ahead - done < 0 ? 0 : ahead - done;
            const int64_t none = piece->place + done == 0; /* the first token of a row is no label */
            widen(&run->tokens, start, size, &its->tokens, some ? next->start + done : 0, some,
                  (int64_t *)out->buf + at + done, far);
            if (labels)
                widen(&run->tokens, start + none, size - none, &run->tokens, 0, 0, labels + at - row - 1 + done + none,
                      far);
        }
    }
    if (far)
        SETTLE();
}

/* gather(shards, block, pieces, first, out, labels=None) -> the first piece that may not be read yet, and nothing is
 * copied; None when all are. shards: number -> (tokens, uint16, int32 or int64; flags of each `block` of them, or None).
 * pieces: rows of row, shard, start, count and place, int64. out: int64 in two dimensions, rows from number `first` on.
 * labels: as out, with a column less; each token is copied to the place before its own, too. */
static PyObject *gather(PyObject *module, PyObject *args)
{
    enum { PIECES, OUT, LABELS, BUFFERS };
    static const Array arrays[] = {
        {"pieces", INT64, 0}, {"out", INT64, WRITTEN}, {"labels", INT64, WRITTEN | OPTIONAL}
    };
    PyObject *shards, *given[BUFFERS] = {[LABELS] = Py_None}, *integers[2], *result = NULL;
    Py_buffer b[BUFFERS];
    Run *runs = NULL;
    Py_ssize_t held = 0, changes = 0, done = -1;
    int64_t block, first;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOOO|O", &PyDict_Type, &shards, &integers[0], &given[PIECES], &integers[1], &given[OUT],
                          &given[LABELS])
        || read_integer(integers[0], "block", 1, INT64_MAX, &block) < 0
        || read_integer(integers[1], "first", 0, INT64_MAX, &first) < 0
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const Piece *pieces = b[PIECES].buf;
    const Py_ssize_t count = b[0].len / (Py_ssize_t)sizeof(Piece);
    if (b[0].len % (Py_ssize_t)sizeof(Piece) || b[1].ndim != 2) {
        PyErr_Format(PyExc_ValueError, "pieces and out: %zd values and %d dimensions given, five for each piece and 2 "
                     "dimensions are needed", b[0].len / 8, b[1].ndim);
        goto done;
    }
    if (b[LABELS].obj && b[LABELS].len != b[OUT].len - 8 * b[OUT].shape[0]) {
        PyErr_Format(PyExc_ValueError, "labels: %zd values given, one less than out has are needed for each row",
                     b[LABELS].len / 8);
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        changes += !i || pieces[i].shard != pieces[i - 1].shard;
    if (!(runs = PyMem_Calloc((size_t)changes + 1, sizeof(Run)))) {
        PyErr_NoMemory();
        goto done;
    }
    if ((done = take_runs(shards, block, pieces, count, first, &b[OUT], runs, &held)) == count && count) {
        Py_BEGIN_ALLOW_THREADS
        copy_pieces(runs, pieces, count, first, &b[OUT], b[LABELS].buf);
        Py_END_ALLOW_THREADS
    }
    if (done >= 0)
        result = done == count ? Py_NewRef(Py_None) : PyLong_FromSsize_t(done);
done:
    while (held)
        release_run(&runs[--held]);
    PyMem_Free(runs);
    release_arrays(b, BUFFERS);
    return result;
}

/* pad(out, valid, value) -> places of padding that are inputs, all but the last of each row: `value` is written to every
 * place behind the first `valid` of a row. out: int64 in two dimensions; valid: int64, for each row. */
static PyObject *pad(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"out", INT64, WRITTEN}, {"valid", INT64, 0}};
    PyObject *given[2], *integer, *result = NULL;
    Py_buffer b[2];
    int64_t value, padding = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &integer)
        || read_integer(integer, "value", INT64_MIN, INT64_MAX, &value) < 0 || take_arrays(arrays, given, b, 2) < 0)
        return NULL;
    const int64_t *valid = b[1].buf, rows = b[0].ndim == 2 ? b[0].shape[0] : -1, width = rows < 0 ? 0 : b[0].shape[1];
    if (rows != b[1].len / 8) {
        PyErr_Format(PyExc_ValueError, "out and valid: %d dimensions and %zd values given, two and one for each row are "
                     "needed", b[0].ndim, b[1].len / 8);
        goto done;
    }
    for (int64_t row = 0; row < rows; row++)
        if (check_range("valid", valid[row], 0, width) < 0)
            goto done;
    for (int64_t row = 0; row < rows; row++) {
        int64_t *its = (int64_t *)b[0].buf + row * width;
        for (int64_t i = valid[row]; i < width; i++)
            its[i] = value;
        padding += valid[row] < width ? width - 1 - valid[row] : 0;
    }
    result = PyLong_FromLongLong(padding);
done:
    release_arrays(b, 2);
    return result;
}

static PyMethodDef methods[] = {
    {"gather", gather, METH_VARARGS, "gather(shards, block, pieces, first, out, labels=None) -> place of a piece, or None"},
    {"pad", pad, METH_VARARGS, "pad(out, valid, value) -> places of padding"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "rows", "Rows of a batch from pieces of shards.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_rows(void) { return PyModuleDef_Init(&module); }
