/* Any page: blocks lie in the text one behind another, elements hold them, and features can be made of them. */
#include "../../../transforms/native/htmlblocks.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *no_values, *lexicon;
    if (!kernel) {
        kernel = start("htmlblocks", PyInit_htmlblocks);
        PyObject *bytes = PyBytes_FromString(""), *view = PyMemoryView_FromObject(bytes);
        no_values = PyObject_CallMethod(view, "cast", "s", "I");
        require(no_values != NULL, "a view of no values");
        int32_t words[LEAST_SLOTS];
        for (int slot = 0; slot < LEAST_SLOTS; slot++)
            words[slot] = slot * 2654435 + slot;
        bytes = PyBytes_FromStringAndSize((const char *)words, sizeof words);
        view = PyMemoryView_FromObject(bytes);
        lexicon = PyObject_CallMethod(view, "cast", "s", "i");
        require(lexicon != NULL, "a lexicon");
    }
    if (size < 2)
        return 0;
    PyObject *page = answer(text_of(data + 1, size - 1));
    PyObject *found = page ? answer(PyObject_CallMethod(kernel, "parse", "On", page, (Py_ssize_t)1 + data[0])) : NULL;
    if (found) {
        PyObject *text, *blocks, *groups, *elements, *extras, *body;
        require(PyArg_ParseTuple(found, "SSSSOO", &text, &blocks, &groups, &elements, &extras, &body), "a page");
        const int32_t *block = (const int32_t *)(const void *)PyBytes_AS_STRING(blocks);
        const Py_ssize_t count = PyBytes_GET_SIZE(blocks) / 4 / B_COLUMNS;
        int32_t end = 0;
        for (Py_ssize_t i = 0; i < count; i++, block += B_COLUMNS) {
            require(block[B_START] >= end && block[B_END] > block[B_START], "blocks behind one another");
            end = block[B_END];
        }
        require(end <= PyBytes_GET_SIZE(text), "blocks in the text");
        PyObject *words = answer(PyObject_CallMethod(kernel, "words", "OO", text, blocks));
        PyObject *said = answer(PyObject_CallMethod(kernel, "say", "OOO", text, blocks, lexicon));
        require(words != NULL && said != NULL, "words of what was parsed");
        PyObject *rows = answer(PyObject_CallMethod(kernel, "features", "OOOOOOn", blocks, groups, elements, said,
                                                    no_values, no_values, (Py_ssize_t)size));
        require(rows != NULL, "features of what was parsed");
        Py_XDECREF(words);
        Py_XDECREF(said);
        Py_XDECREF(rows);
    }
    Py_XDECREF(found);
    Py_XDECREF(page);
    return 0;
}
