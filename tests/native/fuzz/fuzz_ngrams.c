/* Any text: a text contains its own runs of words, and every hit lies inside it. */
#include "../../../transforms/native/ngrams.c"

#include "fuzz.h"

static PyObject *numbers(const int64_t *values, Py_ssize_t count)
{
    PyObject *bytes = PyMemoryView_FromMemory((char *)(uintptr_t)values, count * 8, PyBUF_READ);
    return PyObject_CallMethod(bytes, "cast", "s", "q");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *table, *lengths, *shorter, *filter;
    static uint32_t entries[CODE_POINTS];
    static const int64_t all = -1, ngram[] = {13, 26}, whole[] = {8, 9, 30};
    if (!kernel) {
        kernel = start("ngrams", PyInit_ngrams);
        for (uint32_t c = 0; c < CODE_POINTS; c++)
            entries[c] = (Py_UNICODE_ISALNUM(c) ? c % 7 ? LETTER : SOLITARY : c % 5 ? BORDER : MARK) << 24 | c;
        table = PyMemoryView_FromMemory((char *)entries, sizeof entries, PyBUF_READ);
        table = PyObject_CallMethod(table, "cast", "s", "I");
        lengths = numbers(ngram, 2);
        shorter = numbers(whole, 3);
        filter = numbers(&all, 1); /* every key passes, so that every run is searched */
    }
    PyObject *text = answer(text_of(data, size));
    PyObject *found = text ? answer(PyObject_CallMethod(kernel, "windows", "OOii", text, table, 13, 0)) : NULL;
    if (found && PyBytes_GET_SIZE(PyTuple_GET_ITEM(found, 0))) {
        int64_t key; /* the first run's */
        memcpy(&key, PyBytes_AS_STRING(PyTuple_GET_ITEM(found, 0)), sizeof key);
        PyObject *keys = numbers(&key, 1);
        PyObject *hits = answer(PyObject_CallMethod(kernel, "scan", "OOiOOOOO", text, table, 0, lengths, shorter, keys,
                                                    filter, filter));
        require(hits && PyBytes_GET_SIZE(hits) >= 24, "a hit for a run of the text itself");
        for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(hits); i += 24) {
            int64_t hit[3];
            memcpy(hit, PyBytes_AS_STRING(hits) + i, sizeof hit);
            require(0 <= hit[0] && hit[0] < hit[1] && hit[1] <= PyUnicode_GET_LENGTH(text) && !hit[2], "a hit inside");
        }
        Py_DECREF(hits);
        Py_DECREF(keys);
    }
    Py_XDECREF(found);
    Py_XDECREF(text);
    return 0;
}
