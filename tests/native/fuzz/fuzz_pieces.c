/* Any text, by BPE and a unigram model, with and without a map of characters; and any map: ids that are known, as many
 * bytes as the text has where nothing is normalised, and the same ids from the cache. */
#include "../../../transforms/native/pieces.c"

#include "fuzz.h"

enum { KINDS = 4, KEYS = 9, FIRST_BYTE = 16, KNOWN = FIRST_BYTE + 256 };
static const char *const texts[KEYS] = {"\n\n", " ", " a", " ab", "a", "ab", "aba", "b", "\xC3\xA9"};

/* The first bytes of `data` are a map of 256 units, changed; what they mean is up to the kernel. */
static PyObject *make_encoder(PyObject *kernel, int kind, const uint8_t *map, size_t size)
{
    static uint32_t ends[KEYS], ids[KEYS], byte_ids[256], values[KEYS];
    static const float scores[KEYS] = {-1, -3, -4, -4.5f, -2, -4, -6, -2, -5};
    char bytes[64];
    size_t length = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        memcpy(bytes + length, texts[i], strlen(texts[i]));
        length += strlen(texts[i]);
        ends[i] = (uint32_t)length;
        ids[i] = i + 1;
        values[i] = i * 7 % 5;
        if (kind & 1)
            memcpy(&values[i], &scores[i], sizeof(float));
    }
    for (uint32_t i = 0; i < 256; i++)
        byte_ids[i] = FIRST_BYTE + i;
    PyObject *array = PyObject_GetAttrString(kernel, "view");
    PyObject *end_view = PyObject_CallFunction(array, "y#", (const char *)ends, (Py_ssize_t)sizeof ends);
    PyObject *id_view = PyObject_CallFunction(array, "y#", (const char *)ids, (Py_ssize_t)sizeof ids);
    require(end_view && id_view, "arrays");
    PyObject *encoder = PyObject_CallMethod(
        kernel, "Encoder", "iy#OOy#y#y#ify#iiy", kind & 1, bytes, (Py_ssize_t)length, end_view, id_view,
        (const char *)values, (Py_ssize_t)sizeof values, "\1\0\0\0\0\0\0\0\0", (Py_ssize_t)KEYS, (const char *)byte_ids,
        (Py_ssize_t)sizeof byte_ids, 0, -12.0, (const char *)map, (Py_ssize_t)size, kind >> 1, kind >> 1, "");
    Py_DECREF(end_view);
    Py_DECREF(id_view);
    Py_DECREF(array);
    return encoder;
}

static void check(PyObject *encoder, PyObject *text, int plain)
{
    PyObject *found = answer(PyObject_CallMethod(encoder, "encode", "O", text));
    PyObject *again = found ? PyObject_CallMethod(encoder, "encode", "O", text) : NULL;
    if (!found)
        return;
    require(again && PyObject_RichCompareBool(found, again, Py_EQ) == 1, "the same ids from the cache");
    Py_ssize_t total = 0;
    for (Py_ssize_t at = 0; at < PyBytes_GET_SIZE(found); at += 4) {
        uint32_t id;
        memcpy(&id, PyBytes_AS_STRING(found) + at, 4);
        require(id < KNOWN && id > 0, "known ids");
        total += id >= FIRST_BYTE ? 1 : (Py_ssize_t)strlen(texts[id - 1]);
    }
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    PyObject *mark = PyUnicode_FromString("\xE2\x96\x81");
    if (plain && PyUnicode_Find(text, mark, 0, PyUnicode_GET_LENGTH(text), 1) == -1)
        require(total == PyBytes_GET_SIZE(bytes), "as many bytes as the text has");
    Py_DECREF(mark);
    Py_DECREF(bytes);
    Py_DECREF(found);
    Py_DECREF(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *encoders[KINDS];
    if (!kernel) {
        kernel = start("pieces", PyInit_pieces);
        PyRun_SimpleString("import pieces, array\npieces.view = lambda bytes: array.array('I', bytes)");
        for (int i = 0; i < KINDS; i++) {
            encoders[i] = make_encoder(kernel, i, data, 0);
            require(encoders[i] != NULL, "an encoder");
        }
    }
    PyObject *text = answer(text_of(data, size));
    for (int i = 0; text && i < KINDS; i++)
        check(encoders[i], text, i < 2);
    if (text && size > 1024 + 8) {
        uint8_t *map = malloc(size + 5);
        memcpy(map, "\0\4\0\0", 4);
        memcpy(map + 4, data, size);
        map[4 + size] = 0;
        PyObject *encoder = answer(make_encoder(kernel, size % KINDS, map, size + 5));
        if (encoder)
            check(encoder, text, 0);
        Py_XDECREF(encoder);
        free(map);
    }
    Py_XDECREF(text);
    return 0;
}
