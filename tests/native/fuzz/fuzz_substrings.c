/* Any text: a window for every word but the last ones, whose anchors are among those of the text. */
#include "../../../transforms/native/substrings.c"

#include "fuzz.h"

static int is_among(uint64_t value, const char *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!memcmp(values + 8 * i, &value, 8))
            return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *table;
    static uint32_t entries[CODE_POINTS];
    if (!kernel) {
        kernel = start("substrings", PyInit_substrings);
        for (uint32_t c = 0; c < CODE_POINTS; c++)
            entries[c] = (Py_UNICODE_ISALNUM(c) ? c % 7 ? LETTER : SOLITARY : c % 5 ? BORDER : MARK) << 24 | c;
        table = PyMemoryView_FromMemory((char *)entries, sizeof entries, PyBUF_READ);
        table = PyObject_CallMethod(table, "cast", "s", "I");
    }
    PyObject *text = answer(text_of(data, size));
    PyObject *found = text ? answer(PyObject_CallMethod(kernel, "anchors", "(OO)O", text, text, table)) : NULL;
    const int width = SPAN + (size ? data[0] % 8 : 0);
    PyObject *key = PyBytes_FromStringAndSize(NULL, size && data[0] % 3 ? WINDOW_KEY_BYTES : 0);
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(key); i++)
        PyBytes_AS_STRING(key)[i] = (char)data[(size_t)i % size];
    PyObject *windows = text ? answer(PyObject_CallMethod(kernel, "windows", "OOiO", text, table, width, key)) : NULL;
    if (found && windows) {
        PyObject *anchors = PyTuple_GET_ITEM(found, 0), *least = PyTuple_GET_ITEM(windows, 0);
        const Py_ssize_t words = PyByteArray_GET_SIZE(PyTuple_GET_ITEM(windows, 2)) / 8;
        const Py_ssize_t count = words >= width ? words - width + 1 : 0, all = PyByteArray_GET_SIZE(anchors) / 16;
        require(PyByteArray_GET_SIZE(least) == 8 * count, "an anchor for each window");
        require(PyByteArray_GET_SIZE(PyTuple_GET_ITEM(windows, 1)) == 8 * count, "a hash for each window");
        for (Py_ssize_t i = 0; i < count; i += 1 + count / 16) {
            uint64_t value;
            memcpy(&value, PyByteArray_AS_STRING(least) + 8 * i, 8);
            require(is_among(value, PyByteArray_AS_STRING(anchors), all), "an anchor of the text");
        }
    }
    Py_XDECREF(found);
    Py_XDECREF(windows);
    Py_XDECREF(key);
    Py_XDECREF(text);
    return 0;
}
