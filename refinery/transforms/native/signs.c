/* Signs of badly cleaned text: control characters; lines, how many there are, and whether they repeat or end alike.
 *
 * Cost: linear. Memory: a table of lines, 48 to 96 bytes for each that the text has room for. Safety: arguments are
 * checked at entry; slots of lines are chosen under a secret key. The GIL is released. */
#include "keyed_hash.h"

static HashKey hash_key;

/* C0 but for tabs and line ends, DEL, and C1 as UTF-8 writes it. */
VECTORISED static int any_control(const uint8_t *data, Py_ssize_t size)
{
    uint8_t found = 0;
    for (Py_ssize_t i = 0; i < size; i++)
        found |= (data[i] < 0x20 && data[i] != '\t' && data[i] != '\n') | (data[i] == 0x7F);
    for (Py_ssize_t i = 0; i + 1 < size; i++)
        found |= (data[i] == 0xC2) & ((data[i + 1] & 0xE0) == 0x80);
    return found;
}

/* has_control(data): whether there is a control character other than tab and line end. */
static PyObject *has_control(PyObject *module, PyObject *text)
{
    int found;
    (void)module;
    if (!PyBytes_Check(text))
        return PyErr_Format(PyExc_TypeError, "data: %s given, bytes are needed", Py_TYPE(text)->tp_name);
    Py_BEGIN_ALLOW_THREADS
    found = any_control((const uint8_t *)PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text));
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(found);
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
    {"has_control", has_control, METH_O, "has_control(data) -> whether a control character is there"},
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
    PyModuleDef_HEAD_INIT, "signs", "Control characters and lines of texts.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_signs(void) { return PyModuleDef_Init(&module); }
