/* Any page: a tag has no more attributes than characters, and a page in two copies no fewer than in one. */
#include "../../../transforms/native/attributes.c"

#include "fuzz.h"

static Py_ssize_t most_in(PyObject *kernel, PyObject *page)
{
    PyObject *found = answer(PyObject_CallMethod(kernel, "most", "O", page));
    const Py_ssize_t most = found ? PyLong_AsSsize_t(found) : -1;
    Py_XDECREF(found);
    return most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("attributes", PyInit_attributes);
    PyObject *page = answer(text_of(data, size));
    const Py_ssize_t most = page ? most_in(kernel, page) : -1;
    if (most >= 0) {
        PyObject *two = PyUnicode_Concat(page, page);
        require(most <= PyUnicode_GET_LENGTH(page), "a character for each attribute");
        require(most_in(kernel, two) >= most, "more text, no fewer attributes");
        Py_DECREF(two);
    }
    Py_XDECREF(page);
    return 0;
}
