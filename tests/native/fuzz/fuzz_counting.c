/* Any text, with the units of its first byte: shares are within bounds, and no hash decides. */
#include "../../../transforms/native/counting.c"

#include "fuzz.h"

/* Calls a function of the kernel, once with few hashes, and requires that both answers are equal. */
static PyObject *twice(PyObject *kernel, const char *name, PyObject *args)
{
    PyObject *function = PyObject_GetAttrString(kernel, name);
    PyObject *found = answer(PyObject_Call(function, args, NULL));
    hash_bits = 1;
    PyObject *again = answer(PyObject_Call(function, args, NULL));
    hash_bits = ~UINT64_C(0);
    require(!found == !again && (!found || PyObject_RichCompareBool(found, again, Py_EQ) == 1), "the same, by few hashes");
    Py_XDECREF(again);
    Py_DECREF(function);
    Py_DECREF(args);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *lists;
    if (!kernel) {
        kernel = start("counting", PyInit_counting);
        lists = Py_BuildValue("((sss)(s)())", "the", "\xcf\x83\xcf\x82", "i\xcc\x87", "a");
    }
    if (size < 2 || size > 1 << 12) /* few hashes take quadratic time */
        return 0;
    const int units = data[0] & 1, most = 2 + data[0] / 2 % 9;
    PyObject *text = answer(text_of(data + 1, size - 1));
    if (!text)
        return 0;
    const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    PyObject *found = answer(PyObject_CallMethod(kernel, "quality", "OOi", text, lists, units));
    for (Py_ssize_t i = 0; found && i < (Py_ssize_t)N_QUALITY; i++)
        require(PyLong_AsUnsignedLongLong(PyStructSequence_GET_ITEM(found, i)) <= 3 * (size_t)n + 1, "counts of the text");
    Py_XDECREF(found);
    found = twice(kernel, "repeated_pieces", Py_BuildValue("(Oi)", text, units));
    for (Py_ssize_t i = 0; found && i < 4; i++)
        require(units == DOLMA || PyFloat_AS_DOUBLE(PyStructSequence_GET_ITEM(found, i)) <= 1, "shares of the text");
    Py_XDECREF(found);
    found = twice(kernel, "repeated_ngrams", Py_BuildValue("(Oii)", text, most, units));
    for (Py_ssize_t i = 3; found && i < PyTuple_GET_SIZE(found); i++)
        require(PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(found, i)) <= 1, "shares of n-grams");
    Py_XDECREF(found);
    found = answer(PyObject_CallMethod(kernel, "c4_lines", "Oii", text, most & 1, most / 2));
    require(!found || PyUnicode_GET_LENGTH(found) <= n, "no longer text");
    Py_XDECREF(found);
    Py_XDECREF(answer(PyObject_CallMethod(kernel, "words_of", "O", text)));
    Py_DECREF(text);
    return 0;
}
