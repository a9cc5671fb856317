/* Any bytes: what they contain is found, and nothing else. */
#include "../../../transforms/native/signs.c"

#include "fuzz.h"

static int contains(const uint8_t *data, size_t size, const char *word)
{
    for (size_t i = 0; i + strlen(word) <= size; i++)
        if (!memcmp(data + i, word, strlen(word)))
            return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *table;
    static uint64_t entries[ROWS * LANES];
    static const char *const WORDS[LANES] = {"a", "the", "\n\n", "article"}; /* one in each lane */
    if (!kernel) {
        kernel = start("signs", PyInit_signs);
        for (int lane = 0; lane < LANES; lane++) {
            const size_t length = strlen(WORDS[lane]);
            for (size_t i = 0; i < length; i++)
                entries[(uint8_t)WORDS[lane][i] * LANES + lane] |= (uint64_t)1 << i;
            entries[BYTES * LANES + lane] = 1;
            entries[(BYTES + 1) * LANES + lane] = (uint64_t)1 << (length - 1);
        }
        table = PyMemoryView_FromMemory((char *)entries, sizeof entries, PyBUF_READ);
        table = PyObject_CallMethod(table, "cast", "s", "Q");
    }
    PyObject *text = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    PyObject *found = answer(PyObject_CallMethod(kernel, "find", "OO", text, table));
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t last;
        memcpy(&last, PyBytes_AS_STRING(found) + 8 * lane, 8);
        require((last != 0) == contains(data, size, WORDS[lane]), "a word is found where it is");
    }
    Py_XDECREF(found);
    Py_XDECREF(answer(PyObject_CallMethod(kernel, "repeats_line", "Oii", text, size ? data[0] % 4 + 1 : 1, 3)));
    Py_XDECREF(answer(PyObject_CallMethod(kernel, "lines_end_in", "OSi", text, text, 2)));
    Py_DECREF(text);
    text = answer(text_of(data, size));
    found = text ? PyObject_CallMethod(kernel, "count_lines", "O", text) : NULL;
    require(!text || (found && PyLong_AsSsize_t(found) <= (Py_ssize_t)size + 1), "no more lines than bytes");
    Py_XDECREF(found);
    Py_XDECREF(text);
    return 0;
}
