/* Any text: its size is that of its bytes. */
#include "../../../transforms/native/sizes.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("sizes", PyInit_sizes);
    PyObject *text = answer(text_of(data, size));
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass") : NULL;
    if (bytes) {
        PyObject *found = PyObject_CallMethod(kernel, "utf8_bytes", "O", text);
        PyObject *lines = PyObject_CallMethod(kernel, "lines", "O", text);
        require(found && PyLong_AsSsize_t(found) == PyBytes_GET_SIZE(bytes), "the size of the bytes");
        require(lines && PyLong_AsSsize_t(lines) >= 1, "a line");
        Py_XDECREF(found);
        Py_XDECREF(lines);
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    return 0;
}
