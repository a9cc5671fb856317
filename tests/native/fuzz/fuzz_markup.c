/* Any page, cut anywhere: words are where they are said to be, hidden parts come one after another, and elements are
 * open inside each other. */
#include "../../../transforms/native/markup.c"

#include "fuzz.h"

static int is_at(const char *at, Py_ssize_t room, const char *word)
{
    return room >= (Py_ssize_t)strlen(word) && !memcmp(at, word, strlen(word));
}

static void check_places(PyObject *kernel, PyObject *page, Py_ssize_t size, const char *bytes, Py_ssize_t until)
{
    PyObject *words = Py_BuildValue("(yy)", "p>", "script");
    PyObject *list = answer(PyObject_CallMethod(kernel, "places", "OOnOi", page, words, until, Py_False, 50));
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        const Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(list, i)), room = (until < size ? until : size) - at;
        require(at >= 0 && (is_at(bytes + at, room, "p>") || is_at(bytes + at, room, "script")), "a word at its place");
    }
    require(!list || PyList_GET_SIZE(list) <= 50, "no more than were asked for");
    Py_XDECREF(list);
    Py_DECREF(words);
}

/* (begin, end): each behind the one before it, none empty, within the page. */
static void check_spans(PyObject *list, Py_ssize_t size)
{
    Py_ssize_t last = 0;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *span = PyList_GET_ITEM(list, i);
        const Py_ssize_t begin = PyLong_AsSsize_t(PyTuple_GET_ITEM(span, 0));
        const Py_ssize_t end = PyLong_AsSsize_t(PyTuple_GET_ITEM(span, 1));
        require(last <= begin && begin < end && end <= size, "parts of a page in order");
        last = end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("markup", PyInit_markup);
    PyObject *page = size % 2 ? PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size)
                              : answer(text_of(data, size));
    Py_ssize_t length = 0;
    const uint8_t *bytes = page ? page_bytes(page, "page", &length) : NULL;
    if (!bytes) {
        PyErr_Clear();
        Py_XDECREF(page);
        return 0;
    }
    const Py_ssize_t until = size ? data[size / 2] * 16 : 0;
    check_places(kernel, page, length, (const char *)bytes, until);
    PyObject *spans = answer(PyObject_CallMethod(kernel, "hidden", "On", page, until));
    check_spans(spans, length);
    Py_XDECREF(spans);
    int64_t ends[] = {until < length ? until : length, length};
    PyObject *memory = PyMemoryView_FromMemory((char *)ends, sizeof ends, PyBUF_READ);
    PyObject *places = PyObject_CallMethod(memory, "cast", "s", "q");
    PyObject *open = answer(PyObject_CallMethod(kernel, "open_tags", "OO", page, places));
    for (Py_ssize_t i = 0; open && i < PyList_GET_SIZE(open); i++) {
        check_spans(PyList_GET_ITEM(open, i), length);
        require(PyList_GET_SIZE(PyList_GET_ITEM(open, i)) <= MOST_OPEN, "a bound on open elements");
    }
    Py_XDECREF(open);
    Py_XDECREF(places);
    Py_XDECREF(memory);
    Py_DECREF(page);
    return 0;
}
