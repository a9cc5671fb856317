/* Any text: as many hashes as lines. */
#include "../../../transforms/native/lines.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *table;
    static uint32_t entries[CODE_POINTS];
    if (!kernel) {
        kernel = start("lines", PyInit_lines);
        for (uint32_t c = 0; c < CODE_POINTS; c++)
            entries[c] = (Py_UNICODE_ISALNUM(c) ? c % 7 ? LETTER : SOLITARY : c % 5 ? BORDER : MARK) << 24 | c;
        table = PyMemoryView_FromMemory((char *)entries, sizeof entries, PyBUF_READ);
        table = PyObject_CallMethod(table, "cast", "s", "I");
    }
    PyObject *text = answer(text_of(data, size));
    PyObject *key = PyBytes_FromStringAndSize(NULL, size && data[0] % 2 ? WORD_KEY_BYTES : 0);
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(key); i++)
        PyBytes_AS_STRING(key)[i] = (char)data[(size_t)i % size];
    PyObject *found = text ? answer(PyObject_CallMethod(kernel, "hash_lines", "(OO)OO", text, text, table, key)) : NULL;
    if (found) {
        Py_ssize_t lines = 1;
        for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text); i++)
            lines += PyUnicode_READ_CHAR(text, i) == '\n';
        require(PyByteArray_GET_SIZE(PyTuple_GET_ITEM(found, 0)) == 2 * lines * 8, "a hash for each line");
    }
    Py_XDECREF(found);
    Py_XDECREF(key);
    Py_XDECREF(text);
    return 0;
}
