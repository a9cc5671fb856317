/* Where the tokens of a view's rows are: pieces of its corpora's shards, from the packed runs of a selection.
 *
 * loader/format/selection.py documents the file, loader/view/selected_domain.py the use.
 *
 * Cost: two binary searches per row, and for each block of 64 runs that a row touches one pass over all of them, since a
 * block is checked as a whole. Memory: 40 bytes per piece. Safety: arguments are checked at entry; what the selection
 * says may be anything: a block that names bytes outside of it, whose runs are empty, adjacent, outside of their shard
 * or other tokens than their segment's is not used, its number is the result. The GIL is released: arrays may be a file. */

#include "kernel.h"

enum { BLOCK = 64, MOST_BITS = 48, PADDING = 8, FIELDS = 5 };
#define MOST_TOKENS ((int64_t)1 << 62)

enum { BEGINS, ENDS, STARTS, BLOCKS, RUNS, SIZES, NUMBERS, TOKENS, ORIGINS, PLACES, DATA, BUFFERS };

static const Array ARRAYS[] = {
    {"begins", INT64, 0}, {"ends", INT64, 0},   {"starts", INT64, 0},  {"blocks", INT64, 0},
    {"runs", INT64, 0},   {"sizes", INT64, 0},  {"numbers", INT64, 0}, {"tokens", INT64, 0},
    {"origins", INT64, 0}, {"places", INT64, 0}, {"data", FLAG, 0},
};

typedef struct {
    const int64_t *begins, *ends, *starts, *blocks, *runs, *sizes, *numbers, *tokens, *origins, *places;
    const uint8_t *data;
    int64_t rows, segments, all_blocks, size, base;
} Selection;

/* A block as it is when it is unpacked: where its runs begin in the view and in the shard, and how long they are. */
typedef struct {
    int64_t count, last, tokens[BLOCK], starts[BLOCK], lengths[BLOCK];
} Block;

typedef struct {
    int64_t *values;
    size_t used, room;
} Pieces;

/* What became of the rows. */
enum { GOOD = -1, NO_MEMORY = -2 }; /* else the number of a damaged block */

/* The last place of [low, high) whose value is `value` or less, `low` if there is none. */
static int64_t last_up_to(const int64_t *values, int64_t low, int64_t high, int64_t value)
{
    int64_t size = high - low - 1;
    while (size > 0) {
        const int64_t half = (size + 1) / 2;
        if (values[low + half] <= value) {
            low += half;
            size -= half;
        } else {
            size = half - 1;
        }
    }
    return low;
}

/* Value `i` of those that have `bits` each from byte `at` on. */
INLINE int64_t unpack(const uint8_t *data, int64_t at, int64_t bits, int64_t i)
{
    uint64_t word;
    memcpy(&word, data + at + (bits * i >> 3), sizeof word);
    return (int64_t)(word >> (bits * i & 7) & (((uint64_t)1 << bits) - 1));
}

/* Unpacks a block of a segment. 0 if it cannot be. */
static int unpack_block(const Selection *s, int64_t segment, int64_t number, Block *block)
{
    const int64_t begin = s->blocks[segment], end = s->blocks[segment + 1], place = s->places[number];
    const int64_t bytes = place >> 16, gap_bits = place >> 8 & 255, bits = place & 255;
    int64_t left = s->runs[segment] - BLOCK * (number - begin), token = s->tokens[number], start = s->origins[number];
    block->count = left < BLOCK ? left : BLOCK;
    if (left < 1 || bytes < 0 || bytes > s->size || bits > MOST_BITS || gap_bits > MOST_BITS || token < 0
        || token >= MOST_TOKENS || start < 0 || start >= MOST_TOKENS)
        return 0;
    const int64_t gaps = bytes + ((block->count * bits + 7) >> 3);
    if (gaps + (((block->count - 1) * gap_bits + 7) >> 3) > s->size
        || (number == begin && token != s->starts[segment] + s->base))
        return 0;
    for (int64_t i = 0; i < block->count; i++) {
        const int64_t length = unpack(s->data, bytes, bits, i);
        const int64_t gap = i + 1 < block->count ? unpack(s->data, gaps, gap_bits, i) : 1;
        if (length < 1 || gap < 1)
            return 0;
        block->tokens[i] = token;
        block->starts[i] = start;
        block->lengths[i] = length;
        token += length; /* below 2^62 + 64 * 2^49 */
        start += length + gap;
    }
    block->last = token;
    return start - 1 <= s->sizes[segment] && token == (number + 1 == end ? s->starts[segment + 1] + s->base
                                                                        : s->tokens[number + 1]);
}

static int add(Pieces *pieces, int64_t row, int64_t number, int64_t start, int64_t count, int64_t place)
{
    if (pieces->used + FIELDS > pieces->room) {
        const size_t room = pieces->room * 2 + 64 * FIELDS;
        int64_t *values = room > PY_SSIZE_T_MAX / sizeof *values ? NULL : realloc(pieces->values, room * sizeof *values);
        if (!values)
            return 0;
        pieces->values = values;
        pieces->room = room;
    }
    int64_t *next = pieces->values + pieces->used;
    next[0] = row, next[1] = number, next[2] = start, next[3] = count, next[4] = place;
    pieces->used += FIELDS;
    return 1;
}

/* The pieces of a row. */
static int64_t cut_row(const Selection *s, int64_t row, Pieces *pieces)
{
    const int64_t begin = s->begins[row], stop = s->ends[row];
    int64_t at = begin, segment = last_up_to(s->starts, 0, s->segments, at);
    Block block;
    while (at < stop) {
        while (s->starts[segment + 1] <= at) /* the last ends at `stop` or behind it */
            segment++;
        const int64_t end = s->starts[segment + 1], until = end < stop ? end : stop;
        if (!s->runs[segment]) {
            if (!add(pieces, row, s->numbers[segment], at - s->starts[segment], until - at, at - begin))
                return NO_MEMORY;
            at = until;
            continue;
        }
        const int64_t token = at + s->base, last = until + s->base;
        const int64_t number = last_up_to(s->tokens, s->blocks[segment], s->blocks[segment + 1], token);
        if (!unpack_block(s, segment, number, &block) || token < s->tokens[number] || token >= block.last)
            return number;
        for (int64_t i = last_up_to(block.tokens, 0, block.count, token); i < block.count; i++) {
            const int64_t first = block.tokens[i] > token ? block.tokens[i] : token;
            const int64_t behind = block.tokens[i] + block.lengths[i] < last ? block.tokens[i] + block.lengths[i] : last;
            if (first >= behind)
                break;
            if (!add(pieces, row, s->numbers[segment], block.starts[i] + first - block.tokens[i], behind - first,
                     first - s->base - begin))
                return NO_MEMORY;
        }
        at = (block.last < last ? block.last : last) - s->base;
    }
    return GOOD;
}

/* -1 and an exception unless segments ascend, their blocks are there, and rows are inside of them. */
static int check_selection(const Selection *s)
{
    if (check_ascending("starts", s->starts, s->segments + 1, s->starts[s->segments], MOST_TOKENS) < 0
        || check_range("starts", s->starts[s->segments], 0, MOST_TOKENS) < 0
        || check_range("base", s->base, 0, MOST_TOKENS - s->starts[s->segments]) < 0)
        return -1;
    for (int64_t i = 0; i < s->segments; i++) {
        const int64_t blocks = s->runs[i] / BLOCK + (s->runs[i] % BLOCK != 0);
        if (s->runs[i] < 0 || s->blocks[i] < 0 || s->blocks[i] > s->all_blocks - blocks
            || s->blocks[i + 1] != s->blocks[i] + blocks) {
            PyErr_Format(PyExc_ValueError, "blocks and runs: segment %lld has blocks from %lld to %lld for %lld runs, "
                         "one for each 64 runs, of %lld blocks, are needed", (long long)i, (long long)s->blocks[i],
                         (long long)s->blocks[i + 1], (long long)s->runs[i], (long long)s->all_blocks);
            return -1;
        }
    }
    for (int64_t i = 0; i < s->rows; i++)
        if (s->begins[i] < 0 || s->ends[i] < s->begins[i] || s->ends[i] > s->starts[s->segments]) {
            PyErr_Format(PyExc_ValueError, "begins and ends: row %lld is from %lld to %lld, ranges of %lld tokens are "
                         "needed", (long long)i, (long long)s->begins[i], (long long)s->ends[i],
                         (long long)s->starts[s->segments]);
            return -1;
        }
    return 0;
}

/* Fills `s`. -1 and an exception for arrays of other lengths than needed. */
static int take_selection(const Py_buffer *b, int64_t base, Selection *s)
{
    const Py_ssize_t rows = b[BEGINS].len, segments = b[RUNS].len, blocks = b[TOKENS].len;
    if (b[ENDS].len != rows || b[STARTS].len != segments + 8 || b[BLOCKS].len != segments + 8
        || b[SIZES].len != segments || b[NUMBERS].len != segments || b[ORIGINS].len != blocks
        || b[PLACES].len != blocks || b[DATA].len < PADDING) {
        PyErr_SetString(PyExc_ValueError, "lengths: a begin and an end for each row; runs, sizes and numbers of each "
                        "segment, one more of starts and blocks; tokens, origins and places of each block; and 8 bytes "
                        "behind the data are needed");
        return -1;
    }
    *s = (Selection){
        .begins = b[BEGINS].buf, .ends = b[ENDS].buf, .starts = b[STARTS].buf, .blocks = b[BLOCKS].buf,
        .runs = b[RUNS].buf, .sizes = b[SIZES].buf, .numbers = b[NUMBERS].buf, .tokens = b[TOKENS].buf,
        .origins = b[ORIGINS].buf, .places = b[PLACES].buf, .data = b[DATA].buf, .rows = rows / 8,
        .segments = segments / 8, .all_blocks = blocks / 8, .size = b[DATA].len - PADDING, .base = base,
    };
    return check_selection(s);
}

/* cut(begins, ends, starts, blocks, runs, sizes, numbers, tokens, origins, places, data, base) -> pieces, or a block.
 *
 * Rows are tokens [begin, end) of a domain, whose segments begin at `starts`, in the selection `base` tokens later.
 * blocks: the first of each segment; runs: of each, 0 for a whole shard; sizes, numbers: tokens and number of its shard.
 * tokens, origins, places, data: those of the selection. pieces: bytearray of int64, row, number, start, tokens, and
 * place in the row, of each. Instead of it the number of a damaged block. */
static PyObject *cut(PyObject *module, PyObject *args)
{
    PyObject *given[BUFFERS], *last, *result = NULL;
    Py_buffer b[BUFFERS];
    Selection s;
    Pieces pieces = {NULL, 0, 0};
    int64_t base, found = GOOD;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOO", &given[BEGINS], &given[ENDS], &given[STARTS], &given[BLOCKS],
                          &given[RUNS], &given[SIZES], &given[NUMBERS], &given[TOKENS], &given[ORIGINS], &given[PLACES],
                          &given[DATA], &last)
        || read_integer(last, "base", 0, MOST_TOKENS, &base) < 0 || take_arrays(ARRAYS, given, b, BUFFERS) < 0)
        return NULL;
    if (take_selection(b, base, &s) < 0)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t row = 0; row < s.rows && found == GOOD; row++)
        found = cut_row(&s, row, &pieces);
    Py_END_ALLOW_THREADS
    if (found == NO_MEMORY)
        PyErr_NoMemory();
    else if (found == GOOD)
        result = PyByteArray_FromStringAndSize((const char *)pieces.values, (Py_ssize_t)(pieces.used * 8));
    else
        result = PyLong_FromLongLong(found);
done:
    free(pieces.values);
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"cut", cut, METH_VARARGS, "cut(begins, ends, starts, …, base) -> int64 pieces, or the number of a damaged block"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "runs", "Pieces of rows from the runs of a selection.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_runs(void) { return PyModuleDef_Init(&module); }
