/* A cheap look for UTF-8 that was taken for another encoding: "Ã©", "â€™", C1 controls.
 *
 * It says where a thorough look is worthwhile, no more. The classes of characters come from Python
 * (transforms/extract/charsets/twice.py), which makes them from its codecs.
 * Cost: linear, about 1 ns a character; nothing for ASCII. Safety: reads within the string; the classes must be 65,536. */

#include "kernel.h"

enum { NEXT = 1, LEAD_2 = 2, LEAD_3 = 4, LEAD_4 = 8, CYRILLIC_NEXT = 16, CYRILLIC_LEAD = 32, OTHER_LEAD = 64,
       OTHER_NEXT = 128 };

#define BMP 0x10000
#define EURO 0x20AC

typedef struct {
    int kind;
    const void *data;
    Py_ssize_t length;
    const unsigned char *classes;
} Text;

static inline Py_UCS4 at(const Text *text, Py_ssize_t i)
{
    return i < text->length ? PyUnicode_READ(text->kind, text->data, i) : 0;
}

static inline int is(const Text *text, Py_ssize_t i, int class)
{
    Py_UCS4 c = at(text, i);
    return c < BMP && text->classes[c] & class;
}

static int begins_here(const Text *text, Py_ssize_t i, Py_UCS4 c)
{
    if (c >= 0x80 && c <= 0x9F) return 1;
    if (c >= BMP) return 0;
    int class = text->classes[c];
    if (class & LEAD_2 && is(text, i + 1, NEXT)) return 1;
    if (class & LEAD_3 && is(text, i + 1, NEXT) && (is(text, i + 2, NEXT) || at(text, i + 1) == EURO)) return 1;
    if (class & LEAD_4 && is(text, i + 1, NEXT) && is(text, i + 2, NEXT) && is(text, i + 3, NEXT)) return 1;
    if (class & OTHER_LEAD && is(text, i + 1, OTHER_NEXT)) return 1;
    return class & CYRILLIC_LEAD && is(text, i + 1, CYRILLIC_NEXT) && is(text, i + 2, CYRILLIC_LEAD)
        && is(text, i + 3, CYRILLIC_NEXT);
}

/* suspect(text, classes) -> bool. classes: a byte for each character of the first plane, the bits above. */
static PyObject *suspect(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *string;
    Py_buffer classes;
    if (!PyArg_ParseTuple(args, "Uy*:suspect", &string, &classes)) return NULL;
    if (classes.len != BMP) {
        PyErr_Format(PyExc_ValueError, "classes: %zd bytes given, %d are needed", classes.len, BMP);
        PyBuffer_Release(&classes);
        return NULL;
    }
    Text text = {PyUnicode_KIND(string), PyUnicode_DATA(string), PyUnicode_GET_LENGTH(string), classes.buf};
    int found = 0;
    if (!PyUnicode_IS_ASCII(string))
        for (Py_ssize_t i = 0; i < text.length && !found; i++) {
            Py_UCS4 c = PyUnicode_READ(text.kind, text.data, i);
            found = c >= 0x80 && begins_here(&text, i, c);
        }
    PyBuffer_Release(&classes);
    return PyBool_FromLong(found);
}

/* controls(data) -> bool: whether UTF-8 holds a control from 80 to 9F, which is C2 and that byte. */
static PyObject *controls(PyObject *Py_UNUSED(module), PyObject *argument)
{
    Py_buffer data;
    if (PyObject_GetBuffer(argument, &data, PyBUF_SIMPLE)) return NULL;
    const unsigned char *byte = data.buf, *end = byte + data.len;
    int found = 0;
    while (!found && byte < end && (byte = memchr(byte, 0xC2, (size_t)(end - byte)))) {
        byte++;
        found = byte < end && *byte >= 0x80 && *byte <= 0x9F;
    }
    PyBuffer_Release(&data);
    return PyBool_FromLong(found);
}

static PyMethodDef methods[] = {
    {"controls", controls, METH_O, "controls(data) -> bool: whether UTF-8 holds a control from 80 to 9F."},
    {"suspect", suspect, METH_VARARGS,
     "suspect(text, classes) -> bool: whether characters stand together as bytes of UTF-8 do."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "mojibake", "Looks for text that was encoded twice.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_mojibake(void) { return PyModuleDef_Init(&module); }
