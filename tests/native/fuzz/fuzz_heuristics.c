/* Any text, limits out of its first bytes: parts are no more than the whole. */
#include "../../../transforms/native/heuristics.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *lists;
    if (!kernel) {
        kernel = start("heuristics", PyInit_heuristics);
        lists = Py_BuildValue("((sss)(s))", "the", "of", "\xe7\x9a\x84", "and");
    }
    if (size < 4)
        return 0;
    PyObject *text = answer(text_of(data + 3, size - 3));
    PyObject *found = text ? answer(PyObject_CallMethod(kernel, "measure", "OOiiiii", text, lists, data[0] % 11,
                                                        data[1] % 32, data[1] / 32, data[2] / 4, data[2] % 64))
                           : NULL;
    if (found) {
        const unsigned long long n = (unsigned long long)PyUnicode_GET_LENGTH(text);
        for (Py_ssize_t i = 0; i < (Py_ssize_t)N_COUNTS; i++)
            require(PyLong_AsUnsignedLongLong(PyStructSequence_GET_ITEM(found, i)) <= 10 * n + 1, "counts of the text");
        PyObject *kept = PyStructSequence_GET_ITEM(found, (Py_ssize_t)N_COUNTS);
        require(kept == Py_None || PyUnicode_GET_LENGTH(kept) < PyUnicode_GET_LENGTH(text), "a shorter text");
    }
    Py_XDECREF(found);
    Py_XDECREF(text);
    return 0;
}
