/* Any page, limits out of its first bytes: depth and elements stay one beyond their limits at most. */
#include "../../../transforms/native/htmlscan.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("htmlscan", PyInit_htmlscan);
    if (size < 2)
        return 0;
    const Py_ssize_t most = data[0] % 2 ? 1 + data[0] : 1 << 16;
    PyObject *page = answer(text_of(data + 1, size - 1));
    PyObject *found = page ? answer(PyObject_CallMethod(kernel, "cost", "Onn", page, most, (Py_ssize_t)1 << 20)) : NULL;
    if (found) {
        Py_ssize_t depth, elements, attributes;
        double steps;
        require(PyArg_ParseTuple(found, "nnnd", &depth, &elements, &attributes, &steps), "a tuple of counts");
        require(depth >= 0 && depth <= most + 1 && elements >= 0 && attributes >= 0 && steps >= 0, "the limits");
    }
    Py_XDECREF(found);
    Py_XDECREF(page);
    return 0;
}
