/* Any text: parts are no more than the whole, and no hash decides. */
#include "../../../transforms/native/datatrove.c"

#include "fuzz.h"

/* The counts of one function, the same by few hashes, and none above the characters of the text and 1. */
static void require_counts(PyObject *kernel, const char *name, PyObject *args, Py_ssize_t n)
{
    PyObject *function = PyObject_GetAttrString(kernel, name);
    PyObject *found = answer(PyObject_Call(function, args, NULL));
    hash_bits = 1;
    PyObject *again = answer(PyObject_Call(function, args, NULL));
    hash_bits = ~UINT64_C(0);
    require(!found == !again && (!found || PyObject_RichCompareBool(found, again, Py_EQ) == 1), "the same, by few hashes");
    for (Py_ssize_t i = 0; found && i < Py_SIZE(found); i++)
        require(PyLong_AsSsize_t(PyStructSequence_GET_ITEM(found, i)) <= n + 1, "counts of the text");
    Py_XDECREF(found);
    Py_XDECREF(again);
    Py_DECREF(function);
    Py_DECREF(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("datatrove", PyInit_datatrove);
    if (size < 2 || size > 1 << 12) /* few hashes take quadratic time */
        return 0;
    PyObject *text = answer(text_of(data + 1, size - 1));
    if (!text)
        return 0;
    const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    require_counts(kernel, "quality", Py_BuildValue("(O)", text), n);
    require_counts(kernel, "repeated_pieces", Py_BuildValue("(O)", text), n);
    require_counts(kernel, "kept_lines", Py_BuildValue("(Oi)", text, data[0]), n);
    PyObject *found = answer(PyObject_CallMethod(kernel, "stripped_lines", "O", text));
    require(!found || PyUnicode_GET_LENGTH(found) <= n, "no longer text");
    Py_XDECREF(found);
    Py_DECREF(text);
    return 0;
}
