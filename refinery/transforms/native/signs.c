/* Short sequences of classes of bytes in a text, all in one pass; its lines: how many there are, and whether they repeat
 * or end alike.
 *
 * sequences -> bits of 256, one for each place of a sequence -> shift-and (Baeza-Yates and Gonnet 1992): bit i is set
 * behind a byte if the places up to i of its sequence fit the bytes up to there. statistics/cues.py makes the table.
 *
 * Cost: about a nanosecond per byte, whatever the sequences and the text; the text is read at two places in turn, so one
 * does not wait for the other. Lines: linear. Memory: a table of lines, 48 to 96 bytes for each that the text has room
 * for. Safety: arguments are checked at entry; slots of lines are chosen under a secret key. The GIL is released. */
#include "keyed_hash.h"

enum {
    LANES = 4, /* of 64 bits; no sequence is in two of them */
    BYTES = 256,
    ROWS = BYTES + 2, /* of the table: places that each byte fits, first places, last places */
    LONGEST = 64,     /* places of a sequence */
};

static HashKey hash_key;

typedef uint64_t Lanes __attribute__((vector_size(LANES * sizeof(uint64_t)))); /* in a register, if one is so wide */

INLINE void load(Lanes *lanes, const uint64_t *table, size_t row)
{
    memcpy(lanes, table + row * LANES, sizeof *lanes);
}

INLINE void step(const uint64_t *table, uint8_t byte, const Lanes *first, Lanes *at, Lanes *seen)
{
    Lanes fit;
    load(&fit, table, byte);
    *at = ((*at << 1) | *first) & fit;
    *seen |= *at;
}

VECTORISED static void scan(const uint64_t *table, const uint8_t *data, Py_ssize_t size, uint64_t *found)
{
    const Py_ssize_t half = size / 2;
    Lanes first, last, one = {0}, other = {0}, before = {0}, behind = {0};
    load(&first, table, BYTES);
    load(&last, table, BYTES + 1);
    for (Py_ssize_t i = 0; i < half; i++) {
        step(table, data[i], &first, &one, &before);
        step(table, data[half + i], &first, &other, &behind);
    }
    for (Py_ssize_t i = 2 * half; i < size; i++)
        step(table, data[i], &first, &other, &behind);
    for (Py_ssize_t i = half; i < size && i < half + LONGEST - 1; i++) /* sequences that begin in the first half */
        step(table, data[i], &first, &one, &before);
    last &= before | behind;
    memcpy(found, &last, sizeof last);
}

/* find(data, table): of the last places of sequences those that were reached, as 32 bytes. */
static PyObject *find(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"table", UINT64, 0}};
    PyObject *text, *given, *result = NULL;
    Py_buffer table;
    uint64_t found[LANES];
    (void)module;
    if (!PyArg_ParseTuple(args, "SO", &text, &given) || take_arrays(arrays, &given, &table, 1) < 0)
        return NULL;
    if (table.len != (Py_ssize_t)sizeof(uint64_t) * ROWS * LANES) {
        PyErr_Format(PyExc_ValueError, "table: %d rows of %d uint64 are needed", ROWS, LANES);
    } else {
        Py_BEGIN_ALLOW_THREADS
        scan(table.buf, (const uint8_t *)PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), found);
        Py_END_ALLOW_THREADS
        result = PyBytes_FromStringAndSize((const char *)found, sizeof found);
    }
    PyBuffer_Release(&table);
    return result;
}

typedef struct {
    const uint8_t *line; /* NULL: free */
    Py_ssize_t size;
    int64_t times;
} Slot;

INLINE uint64_t hash_line(const uint8_t *line, Py_ssize_t size)
{
    uint64_t hash = slot_hash(&hash_key, (uint64_t)size), part[2];
    for (; size >= 16; line += 16, size -= 16) {
        memcpy(part, line, 16);
        hash = fold(hash ^ part[0] ^ hash_key.a, part[1] ^ hash_key.c);
    }
    part[0] = part[1] = 0;
    memcpy(part, line, (size_t)size);
    return fold(hash ^ part[0] ^ hash_key.a, part[1] ^ hash_key.c);
}

/* How often the line is there by now. slots: a power of two, more than there are lines. */
static int64_t count_line(Slot *table, size_t slots, const uint8_t *line, Py_ssize_t size)
{
    for (size_t at = (size_t)hash_line(line, size) & (slots - 1);; at = (at + 1) & (slots - 1)) {
        Slot *slot = &table[at];
        if (!slot->line)
            slot->line = line, slot->size = size;
        if (slot->size == size && !memcmp(slot->line, line, (size_t)size))
            return ++slot->times;
    }
}

INLINE const uint8_t *line_end(const uint8_t *line, const uint8_t *end)
{
    const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
    return stop ? stop : end;
}

/* 1 or 0; -1 without memory. */
static int any_repeats(const uint8_t *data, Py_ssize_t size, Py_ssize_t least, int64_t times)
{
    const size_t most = (size_t)size / ((size_t)least + 1) + 1; /* lines of that length */
    const uint8_t *end = data + size;
    size_t slots = 4;
    int found = 0;
    if (most < (uint64_t)times)
        return 0;
    while (slots < 2 * most)
        slots *= 2;
    Slot *table = PyMem_RawCalloc(slots, sizeof *table);
    if (!table)
        return -1;
    for (const uint8_t *line = data, *stop; !found && line <= end; line = stop + 1) {
        stop = line_end(line, end);
        found = stop - line >= least && count_line(table, slots, line, stop - line) >= times;
    }
    PyMem_RawFree(table);
    return found;
}

/* repeats_line(data, least, times): whether a line of at least so many bytes is there so often. */
static PyObject *repeats_line(PyObject *module, PyObject *args)
{
    PyObject *text, *lengths, *counts;
    int64_t least, times;
    int found;
    (void)module;
    if (!PyArg_ParseTuple(args, "SOO", &text, &lengths, &counts)
        || read_integer(lengths, "least", 1, PY_SSIZE_T_MAX - 1, &least) < 0
        || read_integer(counts, "times", 1, INT64_MAX, &times) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = any_repeats((const uint8_t *)PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), (Py_ssize_t)least, times);
    Py_END_ALLOW_THREADS
    return found < 0 ? PyErr_NoMemory() : PyBool_FromLong(found);
}

/* Whether the last byte of the line that is neither a blank nor a tab is one of `ends`. */
INLINE int ends_in(const uint8_t *line, const uint8_t *stop, const char *ends, Py_ssize_t count)
{
    while (stop > line && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    int found = 0;
    for (Py_ssize_t i = 0; i < count && stop > line; i++)
        found |= stop[-1] == (uint8_t)ends[i];
    return found;
}

/* lines_end_in(data, ends, times): whether so many lines in a row end in one of these bytes, before blanks and tabs. */
static PyObject *lines_end_in(PyObject *module, PyObject *args)
{
    PyObject *text, *ends, *counts;
    int64_t times, row = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "SSO", &text, &ends, &counts)
        || read_integer(counts, "times", 1, INT64_MAX, &times) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *line = (const uint8_t *)PyBytes_AS_STRING(text), *end = line + PyBytes_GET_SIZE(text);
    for (const uint8_t *stop; row < times && line <= end; line = stop + 1) {
        stop = line_end(line, end);
        row = ends_in(line, stop, PyBytes_AS_STRING(ends), PyBytes_GET_SIZE(ends)) ? row + 1 : 0;
    }
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(row >= times);
}

#define DEFINE_COUNT(NAME, CHAR, SUM, BLOCK) /* a sum is as wide as a character: registers hold as many, BLOCK fit */ \
    VECTORISED static int64_t NAME(const CHAR *data, Py_ssize_t length)                                             \
    {                                                                                                               \
        int64_t total = 0;                                                                                          \
        for (Py_ssize_t start = 0; start < length; start += BLOCK) {                                                \
            const Py_ssize_t stop = length - start < BLOCK ? length : start + BLOCK;                                \
            SUM ends = 0;                                                                                           \
            for (Py_ssize_t i = start; i < stop; i++)                                                               \
                ends = (SUM)(ends + (data[i] == '\n'));                                                             \
            total += ends;                                                                                          \
        }                                                                                                           \
        return total;                                                                                               \
    }

DEFINE_COUNT(ends_1, Py_UCS1, uint8_t, 128)
DEFINE_COUNT(ends_2, Py_UCS2, uint16_t, 4096)
DEFINE_COUNT(ends_4, Py_UCS4, uint32_t, 65536)

/* count_lines(text): line ends of a str, and one more. */
static PyObject *count_lines(PyObject *module, PyObject *text)
{
    int64_t ends;
    (void)module;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "text: %s given, a str is needed", Py_TYPE(text)->tp_name);
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    const int kind = PyUnicode_KIND(text);
    Py_BEGIN_ALLOW_THREADS
    ends = kind == 1 ? ends_1(data, length) : kind == 2 ? ends_2(data, length) : ends_4(data, length);
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(ends + 1);
}

static PyMethodDef methods[] = {
    {"find", find, METH_VARARGS, "find(data, table) -> the last places of the sequences that are there, 32 bytes"},
    {"repeats_line", repeats_line, METH_VARARGS, "repeats_line(data, least, times) -> whether a line repeats"},
    {"lines_end_in", lines_end_in, METH_VARARGS, "lines_end_in(data, ends, times) -> whether lines in a row end alike"},
    {"count_lines", count_lines, METH_O, "count_lines(text) -> line ends of the text, and one more"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    (void)module;
    return draw_key(&hash_key);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "signs", "Short sequences of bytes, and repeated lines.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_signs(void) { return PyModuleDef_Init(&module); }
