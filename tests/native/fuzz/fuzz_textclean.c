/* Any text: clean() changes nothing the second time, text_id() the hash of what str.split and join make, utf8_size()
 * the length of what encode makes. */
#include "../../../transforms/native/textclean.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *blank, *hashed;
    if (!kernel) {
        kernel = start("textclean", PyInit_textclean);
        blank = PyUnicode_FromString(" ");
        PyRun_SimpleString("import hashlib\n"
                           "def hashed(data, size): return hashlib.blake2b(data, digest_size=size).digest()\n");
        hashed = PyObject_GetAttrString(PyImport_AddModule("__main__"), "hashed");
    }
    PyObject *text = answer(text_of(data, size));
    if (!text)
        return 0;
    for (int inner = 0; inner < 2; inner++) {
        PyObject *once = answer(PyObject_CallMethod(kernel, "clean", "Oi", text, inner));
        PyObject *twice = answer(PyObject_CallMethod(kernel, "clean", "Oi", once, inner));
        require(PyUnicode_Compare(once, twice) == 0, "clean(clean(text)) == clean(text)");
        Py_DECREF(once);
        Py_DECREF(twice);
    }
    PyObject *words = PyObject_CallMethod(text, "split", NULL), *joined = PyUnicode_Join(blank, words);
    PyObject *expected = answer(PyUnicode_AsUTF8String(joined));
    PyObject *found = answer(PyObject_CallMethod(kernel, "text_id", "O", text));
    PyObject *hash = expected ? answer(PyObject_CallFunction(hashed, "Oi", expected, 16)) : NULL;
    require(!expected == !found && (!found || PyObject_RichCompareBool(found, hash, Py_EQ) == 1), "text_id(text)");
    Py_XDECREF(hash);
    PyObject *encoded = answer(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
    PyObject *length = answer(PyObject_CallMethod(kernel, "utf8_size", "O", text));
    require(PyLong_AsSsize_t(length) == PyBytes_GET_SIZE(encoded), "utf8_size(text)");
    PyObject *lone = answer(PyObject_CallMethod(kernel, "has_surrogates", "O", text));
    require((lone == Py_True) == !expected, "has_surrogates(text)");
    Py_DECREF(encoded);
    Py_DECREF(length);
    Py_DECREF(lone);
    Py_DECREF(words);
    Py_DECREF(joined);
    Py_XDECREF(expected);
    Py_XDECREF(found);
    Py_DECREF(text);
    return 0;
}
