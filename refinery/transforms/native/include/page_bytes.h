/* The bytes of a page that is given as a str or as bytes. A str is encoded at most once: it keeps its UTF-8. */

#ifndef REFINERY_PAGE_BYTES_H
#define REFINERY_PAGE_BYTES_H

#include <Python.h>
#include <stdint.h>

/* NULL and an exception for another object, and for a str with lone surrogates. Bytes may be any. */
static const uint8_t *page_bytes(PyObject *page, const char *name, Py_ssize_t *size)
{
    if (PyUnicode_Check(page))
        return (const uint8_t *)PyUnicode_AsUTF8AndSize(page, size);
    if (!PyBytes_Check(page)) {
        PyErr_Format(PyExc_TypeError, "%s: %s given, a str or bytes are needed", name, Py_TYPE(page)->tp_name);
        return NULL;
    }
    *size = PyBytes_GET_SIZE(page);
    return (const uint8_t *)PyBytes_AS_STRING(page);
}

#endif
