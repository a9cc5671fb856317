/* Any text: shingles and signatures are there, and the signature is the minimum over the shingles. */
#include "../../../transforms/native/minhash.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *table, *a, *b;
    static uint32_t entries[CODE_POINTS];
    if (!kernel) {
        kernel = start("minhash", PyInit_minhash);
        for (uint32_t c = 0; c < CODE_POINTS; c++) {
            const uint32_t kind = c >= 0x4E00 && c < 0xA000 ? SOLITARY : Py_UNICODE_ISALNUM(c) ? LETTER : BORDER;
            entries[c] = (c >= 0x300 && c < 0x370 ? MARK : kind) << 24 | Py_UNICODE_TOLOWER(c);
        }
        table = PyMemoryView_FromMemory((char *)entries, sizeof entries, PyBUF_READ);
        table = PyObject_CallMethod(table, "cast", "s", "I");
        static uint32_t ones[17];
        for (int i = 0; i < 17; i++)
            ones[i] = 1;
        a = PyObject_CallMethod(PyMemoryView_FromMemory((char *)ones, sizeof ones, PyBUF_READ), "cast", "s", "I");
        b = a;
    }
    if (size < 2)
        return 0;
    uint32_t signature[17];
    PyObject *text = answer(text_of(data + 1, size - 1));
    PyObject *view = PyMemoryView_FromMemory((char *)signature, sizeof signature, PyBUF_WRITE);
    PyObject *out = PyObject_CallMethod(view, "cast", "s", "I");
    const int ngram = 1 + data[0] / 3, unit = data[0] % 3;
    PyObject *found = NULL, *none = NULL;
    if (text) {
        found = answer(PyObject_CallMethod(kernel, "shingles", "OOii", text, table, ngram, unit));
        none = answer(
            PyObject_CallMethod(kernel, "signatures", "(O)OiiOOO", text, table, ngram, unit, a, b, out));
    }
    if (found && none) {
        uint32_t least = UINT32_MAX, hash;
        for (Py_ssize_t at = 0; at < PyBytes_GET_SIZE(found); at += 4) {
            memcpy(&hash, PyBytes_AS_STRING(found) + at, 4);
            hash = (hash ^ hash >> 16) * 0x85EBCA6Bu;
            hash = (hash ^ hash >> 13) * 0xC2B2AE35u;
            hash = (hash ^ hash >> 16) + 1;
            least = hash < least ? hash : least;
        }
        for (int i = 0; i < 17; i++)
            require(signature[i] == least, "the minimum over the shingles");
    }
    Py_XDECREF(found);
    Py_XDECREF(none);
    Py_XDECREF(out);
    Py_XDECREF(view);
    Py_XDECREF(text);
    return 0;
}
