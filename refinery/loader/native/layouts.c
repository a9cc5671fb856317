/* Rows of whole documents for one epoch: which pieces of a block are in which of its rows.
 *
 * loader/packing/layouts.py documents the algorithm, include/pack.h has the packing. A block is a run of pieces that are
 * packed by themselves. Its layout is what rows there are: int32 [rows + 1], where each row's pieces begin in the rest of
 * it, and the numbers of the pieces in the block, int32, ascending in each row. Layouts are parts of one array, the
 * `ring`; row_pieces.c reads them.
 *
 * Cost: some 60 ns for each piece; 50 bytes for each of the largest block, and as include/pack.h. Safety: bounds and
 * lengths are checked at entry. The GIL is released. */

#include "pack.h"

#define GOLDEN 0x9E3779B97F4A7C15u
#define HALVINGS 3 /* of the noise, before there is none */

static inline uint64_t mix(uint64_t x) /* SplitMix64's finalizer, as in loader/order/order.py */
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

typedef struct {
    uint64_t key;
    int64_t row;
} Place;

/* What packing blocks takes, for as many pieces as the largest has. */
typedef struct {
    int64_t capacity;
    Queues pieces, rows;
    int64_t *lengths, *keys, *row_of, *openers;
    Place *places;
} Packer;

static void free_packer(Packer *p)
{
    free_queues(&p->pieces);
    free_queues(&p->rows);
    free(p->lengths);
    free(p->keys);
    free(p->row_of);
    free(p->openers);
    free(p->places);
}

/* 0 without memory. */
static int make_packer(Packer *p, int64_t capacity, int64_t most)
{
    const size_t size = (size_t)most * 8 + 8;
    p->capacity = capacity;
    if (!make_queues(&p->pieces, capacity + 1, most) || !make_queues(&p->rows, capacity + 1, most))
        return 0;
    p->lengths = malloc(size), p->keys = malloc(size), p->row_of = malloc(size), p->openers = malloc(size);
    p->places = malloc(2 * size);
    return p->lengths && p->keys && p->row_of && p->openers && p->places;
}

/* Lengths with noise: each less a part of it by chance, up to noise / 2^16. */
VECTORISED static void add_noise(const int64_t *restrict starts, const int64_t *restrict lengths, int64_t count,
                                 uint64_t salt, int64_t noise, int64_t *restrict keys)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t x = (uint64_t)starts[i] * GOLDEN + salt;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        x ^= x >> 31;
        keys[i] = lengths[i] - (int64_t)((uint64_t)lengths[i] * (x & 0xFFFF) * (uint64_t)noise >> 32);
    }
}

/* Packs a block; returns how many rows it has. `count` pieces, whose lengths are there. */
static int64_t pack_block(Packer *p, const int64_t *starts, int64_t count, uint64_t key, uint64_t turn, int64_t noise)
{
    add_noise(starts, p->lengths, count, mix(key + turn), noise, p->keys);
    return pack_group(&p->pieces, &p->rows, p->lengths, p->keys, 0, count, p->capacity, 0, p->row_of, p->openers);
}

static void take_lengths(Packer *p, const int32_t *reads, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        p->lengths[i] = reads[i] < p->capacity ? reads[i] : p->capacity;
}

/* Packs a block into `limit` rows: with noise, with half of it, ..., at last with none. Where rows are left, the pieces
 * that come first in the block and opened none get one each. 0 if that many rows are not to be had. */
static int pack_into(Packer *p, const int64_t *starts, int64_t count, uint64_t key, int64_t noise, int64_t limit)
{
    int64_t rows = limit + 1;
    for (int turn = 1; rows > limit && turn <= HALVINGS + 2; turn++)
        rows = pack_block(p, starts, count, key, (uint64_t)turn, turn > HALVINGS + 1 ? 0 : noise >> (turn - 1));
    for (int64_t i = 0; i < count && rows < limit; i++)
        if (p->openers[p->row_of[i]] != i) {
            p->openers[rows] = i;
            p->row_of[i] = rows++;
        }
    return rows == limit;
}

static int compare_places(const void *x, const void *y)
{
    const uint64_t a = ((const Place *)x)->key, b = ((const Place *)y)->key;
    return (a > b) - (a < b);
}

/* Writes the layout of a block of `rows` rows: these come in the order of a hash of the tokens that open them. */
static void write_layout(Packer *p, const int64_t *starts, int64_t count, int64_t rows, uint64_t key, int32_t *layout)
{
    int64_t *place_of = p->keys; /* free again */
    for (int64_t row = 0; row < rows; row++) {
        p->places[row].key = mix((uint64_t)starts[p->openers[row]] * GOLDEN + key);
        p->places[row].row = row;
    }
    qsort(p->places, (size_t)rows, sizeof(Place), compare_places);
    for (int64_t place = 0; place < rows; place++)
        place_of[p->places[place].row] = place;
    memset(layout, 0, (size_t)(rows + 1) * 4);
    for (int64_t i = 0; i < count; i++)
        layout[place_of[p->row_of[i]] + 1]++;
    for (int64_t place = 0; place < rows; place++) {
        layout[place + 1] += layout[place];
        p->openers[place] = layout[place]; /* where the row's next piece goes */
    }
    for (int64_t i = 0; i < count; i++)
        layout[rows + 1 + p->openers[place_of[p->row_of[i]]]++] = (int32_t)i;
}

/* lay_out(starts, reads, piece_bounds, row_bounds, capacity, noise, key, wanted, at, ring): writes the layouts of the
 * blocks `wanted` to the ring, from `at` on each. key: of the epoch. */
static PyObject *lay_out(PyObject *module, PyObject *args)
{
    enum { STARTS, READS, BOUNDS, ROWS, WANTED, AT, RING, BUFFERS };
    static const Array arrays[] = {
        {"starts", INT64, 0}, {"reads", INT32, 0}, {"piece_bounds", INT64, 0}, {"row_bounds", INT64, 0},
        {"wanted", INT64, 0}, {"at", INT64, 0}, {"ring", INT32, WRITTEN},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *packing[3], *result = NULL;
    Packer p = {0};
    int64_t capacity, noise, key, most = 0, wrong = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOO", &given[STARTS], &given[READS], &given[BOUNDS], &given[ROWS], &packing[0],
                          &packing[1], &packing[2], &given[WANTED], &given[AT], &given[RING])
        || read_integer(packing[0], "capacity", 1, MOST - 1, &capacity) < 0
        || read_integer(packing[1], "noise", 0, 1 << 16, &noise) < 0
        || read_integer(packing[2], "key", 0, INT64_MAX, &key) < 0 || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const int64_t *starts = b[STARTS].buf, *bounds = b[BOUNDS].buf, *rows = b[ROWS].buf, *at = b[AT].buf;
    const int64_t *wanted = b[WANTED].buf, count = b[WANTED].len / 8, blocks = b[BOUNDS].len / 8 - 1;
    const int32_t *reads = b[READS].buf;
    if (b[STARTS].len / 8 != b[READS].len / 4 || b[ROWS].len != b[BOUNDS].len || b[AT].len != b[WANTED].len) {
        PyErr_SetString(PyExc_ValueError, "starts and reads, piece_bounds and row_bounds, wanted and at: as many values "
                                          "are needed of each");
        goto done;
    }
    for (int64_t i = 0; i < count; i++) {
        if (check_range("wanted", wanted[i], 0, blocks - 1) < 0)
            goto done;
        const int64_t first = bounds[wanted[i]], stop = bounds[wanted[i] + 1];
        const int64_t its = rows[wanted[i] + 1] - rows[wanted[i]];
        if (first < 0 || stop < first || stop > b[READS].len / 4 || its < 0 || its > stop - first || at[i] < 0
            || stop - first >= INT32_MAX || at[i] > b[RING].len / 4 - (stop - first) - its - 1) {
            PyErr_Format(PyExc_ValueError, "wanted: block %lld has pieces %lld to %lld and %lld rows, from %lld on; they "
                         "have to be inside their arrays", (long long)wanted[i], (long long)first, (long long)stop,
                         (long long)its, (long long)at[i]);
            goto done;
        }
        for (int64_t k = first; k < stop; k++)
            if (reads[k] < 1 || reads[k] > capacity + 1) {
                check_range("reads", reads[k], 1, capacity + 1);
                goto done;
            }
        if (stop - first > most)
            most = stop - first;
    }
    if (!make_packer(&p, capacity, most)) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < count && wrong < 0; i++) {
        const int64_t first = bounds[wanted[i]], its = bounds[wanted[i] + 1] - first;
        const int64_t limit = rows[wanted[i] + 1] - rows[wanted[i]];
        take_lengths(&p, reads + first, its);
        if (!pack_into(&p, starts + first, its, (uint64_t)key, noise, limit))
            wrong = wanted[i];
        else
            write_layout(&p, starts + first, its, limit, (uint64_t)key, (int32_t *)b[RING].buf + at[i]);
    }
    Py_END_ALLOW_THREADS
    if (wrong < 0)
        result = Py_NewRef(Py_None);
    else
        PyErr_Format(PyExc_ValueError, "row_bounds: block %lld has another number of rows", (long long)wrong);
done:
    free_packer(&p);
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"lay_out", lay_out, METH_VARARGS,
     "lay_out(starts, reads, piece_bounds, row_bounds, capacity, noise, key, wanted, at, ring)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "layouts", "Rows of whole documents for one epoch.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_layouts(void) { return PyModuleDef_Init(&module); }
