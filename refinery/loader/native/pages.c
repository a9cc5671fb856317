/* Pages of a file and their CRC-32C: of bytes in memory, and of cached blocks, whose tokens are read, compared with
 * these checksums and widened in one pass.
 *
 * A batch has a few pages of each of many blocks. They are read into memory that stays in the processor's cache, and no
 * byte of them is delivered unless its page was compared in that memory. The GIL is released: a page may have to come
 * from the disk, and the threads that fetch blocks go on meanwhile.
 *
 * CRC-32C (Castagnoli; RFC 3720) by the processor's instruction for it where there is one: two pages at a time, since
 * an instruction takes three cycles and begins in one. Elsewhere by tables of eight bytes (Kounavis and Berry 2005, "A
 * systematic approach to building high performance, software-based, CRC generators"). */

#define _POSIX_C_SOURCE 200809L /* pread */

#include "widen.h"

#include <unistd.h>

#define POLYNOMIAL 0x82F63B78u /* bits reversed */
#define MOST_READ (1 << 17)    /* bytes that are read at once: half of a small second-level cache */

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][i] = crc;
    }
    for (int byte = 1; byte < 8; byte++)
        for (int i = 0; i < 256; i++)
            tables[byte][i] = tables[byte - 1][i] >> 8 ^ tables[0][tables[byte - 1][i] & 255];
}

static uint32_t crc_by_tables(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        word ^= crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++)
            crc ^= tables[7 - byte][word >> 8 * byte & 255];
    }
    for (; size; data++, size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *data) & 255];
    return ~crc;
}

/* CRC-32C of each page of `size` bytes; the last may be shorter. */
static void values_by_tables(const uint8_t *data, size_t size, size_t page, uint32_t *out)
{
    for (; size; out++) {
        const size_t part = size < page ? size : page;
        *out = crc_by_tables(data, part);
        data += part, size -= part;
    }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
#define WITH_CRC __attribute__((target("sse4.2")))

WITH_CRC static uint32_t crc_by_instruction(uint64_t crc, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; size; data++, size--)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *data);
    return ~(uint32_t)crc;
}

WITH_CRC static void values_by_instruction(const uint8_t *data, size_t size, size_t page, uint32_t *out)
{
    for (; size >= 2 * page; data += 2 * page, size -= 2 * page, out += 2) {
        uint64_t first = UINT32_MAX, second = UINT32_MAX, x, y;
        size_t i = 0;
        for (; i + 8 <= page; i += 8) {
            memcpy(&x, data + i, 8);
            memcpy(&y, data + page + i, 8);
            first = __builtin_ia32_crc32di(first, x);
            second = __builtin_ia32_crc32di(second, y);
        }
        out[0] = crc_by_instruction(first, data + i, page - i);
        out[1] = crc_by_instruction(second, data + page + i, page - i);
    }
    for (; size; out++) {
        const size_t part = size < page ? size : page;
        *out = crc_by_instruction(UINT32_MAX, data, part);
        data += part, size -= part;
    }
}

static void hash_pages(const uint8_t *data, size_t size, size_t page, uint32_t *out)
{
    (__builtin_cpu_supports("sse4.2") ? values_by_instruction : values_by_tables)(data, size, page, out);
}
#else
#define hash_pages values_by_tables
#endif

/* values(data, page) -> bytes: the CRC-32C of each page of `page` bytes, uint32; the last page may be shorter. */
static PyObject *values(PyObject *self, PyObject *args)
{
    PyObject *given, *integer, *found = NULL;
    Py_buffer data;
    int64_t page;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &given, &integer) || read_integer(integer, "page", 1, INT32_MAX, &page) < 0
        || PyObject_GetBuffer(given, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const Py_ssize_t pages = data.len / (Py_ssize_t)page + (data.len % (Py_ssize_t)page != 0);
    if ((found = PyBytes_FromStringAndSize(NULL, 4 * pages)) != NULL) {
        Py_BEGIN_ALLOW_THREADS
        hash_pages(data.buf, (size_t)data.len, (size_t)page, (uint32_t *)PyBytes_AS_STRING(found));
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    return found;
}

/* An open file that has the `length` bytes of a block first, and the CRC-32C of its pages. */
typedef struct {
    int descriptor;
    int64_t length;
    const uint32_t *table;
} Block;

/* A piece: `count` tokens of a block from `start` on, at `place` of a row. */
typedef struct {
    int64_t row, block, start, count, place;
} Piece;

/* The pages of a block that are in memory, verified: its bytes [begin, end). */
typedef struct {
    uint8_t *data;
    uint32_t *found; /* their checksums */
    int64_t block, begin, end;
} Window;

/* Brings the page at `offset` of a block into the window, and as many of the pages behind it up to `stop` as fit. 0 if
 * they cannot be read or are not what they were. */
static int move_window(Window *window, const Block *blocks, int64_t number, int64_t page, int64_t offset, int64_t stop)
{
    const Block *block = &blocks[number];
    const int64_t begin = offset / page * page, most = MOST_READ / page * page;
    int64_t end = (stop + page - 1) / page * page, size = 0;
    end = end < block->length ? end : block->length;
    end = end - begin < (most ? most : page) ? end : begin + (most ? most : page);
    window->block = -1;
    while (size < end - begin) {
        const ssize_t count = pread(block->descriptor, window->data + size, (size_t)(end - begin - size), begin + size);
        if (count <= 0)
            return 0;
        size += count;
    }
    hash_pages(window->data, (size_t)size, (size_t)page, window->found);
    if (memcmp(window->found, block->table + begin / page, 4 * (size_t)((size + page - 1) / page)))
        return 0;
    window->block = number, window->begin = begin, window->end = end;
    return 1;
}

static void widen(const uint8_t *data, int64_t count, int64_t itemsize, int64_t *out)
{
    if (itemsize == 8)
        widen_int64((const int64_t *)data, count, (const int64_t *)data, 0, out, 0);
    else if (itemsize == 4)
        widen_int32((const int32_t *)data, count, (const int32_t *)data, 0, out, 0);
    else
        widen_uint16((const uint16_t *)data, count, (const uint16_t *)data, 0, out, 0);
}

/* Copies a piece; 0 if its pages are not what they were. */
static int copy_piece(const Piece *piece, const Block *blocks, int64_t page, int64_t itemsize, Window *window,
                      int64_t *out)
{
    int64_t offset = piece->start * itemsize;
    const int64_t stop = offset + piece->count * itemsize;
    while (offset < stop) {
        if ((window->block != piece->block || offset < window->begin || offset >= window->end)
            && !move_window(window, blocks, piece->block, page, offset, stop))
            return 0;
        const int64_t end = stop < window->end ? stop : window->end;
        widen(window->data + (offset - window->begin), (end - offset) / itemsize, itemsize, out);
        out += (end - offset) / itemsize, offset = end;
    }
    return 1;
}

/* Reads `given`, whose entries are (descriptor, length, table); it has to stay as long as what is returned. */
static Block *take_blocks(PyObject *given, int64_t page, Py_ssize_t *count)
{
    Block *blocks;
    *count = PyTuple_GET_SIZE(given);
    if (!(blocks = PyMem_Calloc((size_t)*count + 1, sizeof(Block))))
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; blocks && i < *count; i++) {
        PyObject *entry = PyTuple_GET_ITEM(given, i);
        int64_t descriptor;
        if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3 || !PyBytes_Check(PyTuple_GET_ITEM(entry, 2))) {
            PyErr_SetString(PyExc_TypeError, "blocks: (descriptor, length, table of bytes) is needed for each");
            goto wrong;
        }
        if (read_integer(PyTuple_GET_ITEM(entry, 0), "descriptor", 0, INT32_MAX, &descriptor) < 0
            || read_integer(PyTuple_GET_ITEM(entry, 1), "length", 0, INT32_MAX, &blocks[i].length) < 0)
            goto wrong;
        const int64_t pages = (blocks[i].length + page - 1) / page, size = PyBytes_GET_SIZE(PyTuple_GET_ITEM(entry, 2));
        if (size != 4 * pages) {
            PyErr_Format(PyExc_ValueError, "blocks: a table of %lld bytes given, four for each of %lld pages are needed",
                         (long long)size, (long long)pages);
            goto wrong;
        }
        blocks[i].descriptor = (int)descriptor;
        blocks[i].table = (const uint32_t *)PyBytes_AS_STRING(PyTuple_GET_ITEM(entry, 2));
    }
    return blocks;
wrong:
    PyMem_Free(blocks);
    return NULL;
}

/* -1 and an exception unless every piece is inside its block, and inside a row of those from `first` on. */
static int check_pieces(const Piece *pieces, Py_ssize_t count, const Block *blocks, Py_ssize_t known, int64_t itemsize,
                        int64_t first, const Py_buffer *out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const Piece *piece = &pieces[i];
        if (piece->block < 0 || piece->block >= known) {
            PyErr_Format(PyExc_ValueError, "pieces: piece %zd is in block %lld, 0 to %zd are known", i,
                         (long long)piece->block, known - 1);
            return -1;
        }
        const int64_t size = blocks[piece->block].length / itemsize;
        if (piece->count < 0 || piece->start < 0 || piece->start > size || piece->count > size - piece->start
            || piece->row < first || piece->row - first >= out->shape[0] || piece->place < 0
            || piece->place > out->shape[1] || piece->count > out->shape[1] - piece->place) {
            PyErr_Format(PyExc_ValueError, "pieces: piece %zd is %lld tokens from %lld on, at %lld of row %lld; it has "
                         "to be inside its block of %lld tokens and inside rows of %zd", i, (long long)piece->count,
                         (long long)piece->start, (long long)piece->place, (long long)piece->row, (long long)size,
                         out->shape[1]);
            return -1;
        }
    }
    return 0;
}

/* gather(blocks, page, itemsize, pieces, first, out) -> list of the pieces that are not copied, since their pages cannot
 * be read or do not have their checksums; what `out` has in their places is undefined. blocks: (descriptor, length,
 * CRC-32C of each page as uint32 in bytes). pieces: rows of row, block, start, count and place, int64; those of a block
 * that follow each other share the pages that they have in common. out: int64 in two dimensions, rows from `first` on. */
static PyObject *gather(PyObject *self, PyObject *args)
{
    static const Array arrays[] = {{"pieces", INT64, 0}, {"out", INT64, WRITTEN}};
    PyObject *sequence, *entries = NULL, *given[2], *integers[3], *result = NULL;
    Py_buffer b[2];
    Block *blocks = NULL;
    Py_ssize_t known = 0;
    int64_t page, itemsize, first;
    uint8_t *failed = NULL;
    Window window = {NULL, NULL, -1, 0, 0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOO", &sequence, &integers[0], &integers[1], &given[0], &integers[2], &given[1])
        || read_integer(integers[0], "page", 8, 1 << 30, &page) < 0
        || read_integer(integers[1], "itemsize", 2, 8, &itemsize) < 0
        || read_integer(integers[2], "first", 0, INT64_MAX, &first) < 0 || take_arrays(arrays, given, b, 2) < 0)
        return NULL;
    const Piece *pieces = b[0].buf;
    const Py_ssize_t count = b[0].len / (Py_ssize_t)sizeof(Piece);
    if (b[0].len % (Py_ssize_t)sizeof(Piece) || b[1].ndim != 2 || page % 8 || (itemsize & (itemsize - 1))) {
        PyErr_Format(PyExc_ValueError, "pieces and out: %zd values and %d dimensions given, five for each piece and 2 "
                     "dimensions are needed; page and itemsize: %lld and %lld given, a multiple of 8, and 2, 4 or 8",
                     b[0].len / 8, b[1].ndim, (long long)page, (long long)itemsize);
        goto done;
    }
    if (!(entries = PySequence_Tuple(sequence)) || !(blocks = take_blocks(entries, page, &known))
        || check_pieces(pieces, count, blocks, known, itemsize, first, &b[1]) < 0)
        goto done;
    const int64_t most = page > MOST_READ ? page : MOST_READ;
    failed = PyMem_Calloc((size_t)count + 1, 1);
    window.data = PyMem_Malloc((size_t)most);
    window.found = PyMem_Malloc(4 * (size_t)(most / page + 1));
    if (!failed || !window.data || !window.found) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t *row = (int64_t *)b[1].buf + (pieces[i].row - first) * b[1].shape[1];
        failed[i] = !copy_piece(&pieces[i], blocks, page, itemsize, &window, row + pieces[i].place);
    }
    Py_END_ALLOW_THREADS
    if (!(result = PyList_New(0)))
        goto done;
    for (Py_ssize_t i = 0; i < count; i++)
        if (failed[i]) {
            PyObject *number = PyLong_FromSsize_t(i);
            const int added = number ? PyList_Append(result, number) : -1;
            Py_XDECREF(number);
            if (added < 0) {
                Py_CLEAR(result);
                goto done;
            }
        }
done:
    PyMem_Free(window.found);
    PyMem_Free(window.data);
    PyMem_Free(failed);
    PyMem_Free(blocks);
    Py_XDECREF(entries);
    release_arrays(b, 2);
    return result;
}

static PyMethodDef methods[] = {
    {"values", values, METH_VARARGS, "values(data, page) -> CRC-32C of each page, uint32 in bytes"},
    {"gather", gather, METH_VARARGS,
     "gather(blocks, page, itemsize, pieces, first, out) -> the pieces that are not copied"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *self)
{
    (void)self;
    make_tables();
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "pages", "Pages and their checksums.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_pages(void) { return PyModuleDef_Init(&module); }
