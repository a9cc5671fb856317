/* Best-fit-decreasing packing of pieces into rows of one capacity, for many independent groups of pieces in a call.
 *
 * loader/packing/best_fit.py documents the algorithm. Pieces wait by length, rows by the room that they have left: both
 * are queues in the order of arrival, one for each size, and a tree of bits over the sizes finds the next queue that is
 * not empty in a step for each factor of 64.
 *
 * Cost: some 20 ns for each piece, whatever the capacity; 34 bytes for each size up to the capacity, 16 for each piece.
 * Safety: groups must ascend and lengths be 1 to the capacity, which is checked before a piece is packed; every index
 * is one that this file has put into a queue itself. */

#include <stdlib.h>

#include "kernel.h"

enum { LEVELS = 4, MOST = 1 << 24 }; /* 64^4 sizes */

/* Queues of items by size. next: of each item, which one follows it in its queue. */
typedef struct {
    uint64_t *bits[LEVELS]; /* which sizes have a queue; above, which words have any */
    int64_t words[LEVELS];
    int64_t *head, *tail, *next;
} Queues;

static int make_queues(Queues *q, int64_t sizes, int64_t items)
{
    int64_t words = sizes;
    memset(q, 0, sizeof *q);
    for (int level = 0; level < LEVELS; level++) {
        words = (words + 63) / 64;
        q->words[level] = words;
        if (!(q->bits[level] = calloc((size_t)words, 8)))
            return 0;
    }
    q->head = malloc((size_t)sizes * 8);
    q->tail = malloc((size_t)sizes * 8);
    q->next = malloc((size_t)items * 8 + 8);
    return q->head && q->tail && q->next;
}

static void free_queues(Queues *q)
{
    for (int level = 0; level < LEVELS; level++)
        free(q->bits[level]);
    free(q->head);
    free(q->tail);
    free(q->next);
}

/* The smallest size from `size` on that has a queue, -1 if there is none. */
static int64_t find_queue(const Queues *q, int64_t size)
{
    for (int level = 0; level < LEVELS && size >> 6 < q->words[level]; level++) {
        const uint64_t word = q->bits[level][size >> 6] >> (size & 63);
        if (word) {
            size += __builtin_ctzll(word);
            while (level--)
                size = size << 6 | __builtin_ctzll(q->bits[level][size]);
            return size;
        }
        size = (size >> 6) + 1;
    }
    return -1;
}

static void put(Queues *q, int64_t size, int64_t item)
{
    int64_t at = size;
    if (q->bits[0][size >> 6] >> (size & 63) & 1) {
        q->next[q->tail[size]] = item;
    } else {
        q->head[size] = item;
        for (int level = 0; level < LEVELS; level++, at >>= 6)
            q->bits[level][at >> 6] |= (uint64_t)1 << (at & 63);
    }
    q->tail[size] = item;
}

/* The first item of a queue that is not empty, which it leaves. */
static int64_t take(Queues *q, int64_t size)
{
    const int64_t item = q->head[size];
    if (item != q->tail[size]) {
        q->head[size] = q->next[item];
        return item;
    }
    for (int level = 0; level < LEVELS; level++, size >>= 6)
        if (q->bits[level][size >> 6] &= ~((uint64_t)1 << (size & 63)))
            break;
    return item;
}

/* Rows of the pieces [first, stop), the rows numbered from `opened` on; returns how many there are then. */
static int64_t pack_group(Queues *pieces, Queues *rows, const int64_t *lengths, int64_t first, int64_t stop,
                          int64_t capacity, int64_t opened, int64_t *row_of, int64_t *openers)
{
    int64_t size = 0, room;
    for (int64_t piece = first; piece < stop; piece++)
        put(pieces, capacity - lengths[piece], piece); /* so the longest are found first */
    while ((size = find_queue(pieces, size)) >= 0) {
        const int64_t length = capacity - size, piece = take(pieces, size);
        int64_t row;
        if ((room = find_queue(rows, length)) >= 0) {
            row = take(rows, room);
        } else {
            row = opened++;
            openers[row] = piece;
            room = capacity;
        }
        row_of[piece] = row;
        if (room > length)
            put(rows, room - length, row);
    }
    for (room = 0; (room = find_queue(rows, room)) >= 0;)
        take(rows, room);
    return opened;
}

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
        opened = pack_group(&pieces, &rows, lengths, groups[i], groups[i + 1], capacity, opened, b[ROW_OF].buf,
                            b[OPENERS].buf);
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
