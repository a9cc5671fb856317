/* Any bytes: what they contain is found, and nothing else. */
#include "../../../transforms/native/signs.c"

#include "fuzz.h"

static int is_control(const uint8_t *data, size_t size, size_t i)
{
    return (data[i] < ' ' && data[i] != '\t' && data[i] != '\n') || data[i] == 127
           || (data[i] == 0xC2 && i + 1 < size && data[i + 1] >= 0x80 && data[i + 1] < 0xA0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    int expected = 0;
    if (!kernel)
        kernel = start("signs", PyInit_signs);
    for (size_t i = 0; i < size; i++)
        expected |= is_control(data, size, i);
    PyObject *text = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    PyObject *found = answer(PyObject_CallMethod(kernel, "has_control", "O", text));
    require((found == Py_True) == expected, "a control character is found where it is");
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
