/* Any text, by each pattern, with and without whole pieces: the tokens' bytes are as many as the text's. An encoder for
 * which NUL is no plain character cuts piece by piece, the other one blocks at once: their tokens are the same. */
#include "../../../transforms/native/bpe.c"

#include "fuzz.h"

enum { KINDS = 2 * PATTERNS, TOKENS = 600 };
static unsigned lengths[TOKENS]; /* bytes of each token */

/* Merges of any two neighbours of the alphabet, then of what they made: long chains of them. */
static PyObject *make_encoder(PyObject *kernel, const char *pattern, int with_whole, int plain)
{
    static uint32_t byte_ids[256], rows[TOKENS][3];
    static uint8_t classes[CODE_POINTS];
    static const char alphabet[] = "atAS '\n\t1./#"; /* one of each kind that splitting looks at */
    uint32_t count = 0;
    for (uint32_t i = 0; i < 256; i++) {
        byte_ids[i] = i;
        lengths[i] = 1;
    }
    for (const char *left = alphabet; *left; left++)
        for (const char *right = alphabet; *right; right++, count++) {
            memcpy(rows[count], (uint32_t[]){(uint8_t)*left, (uint8_t)*right, 256 + count}, sizeof rows[count]);
            lengths[256 + count] = 2;
        }
    for (uint32_t i = 0; 256 + count < TOKENS - 1; i++, count++) {
        memcpy(rows[count], (uint32_t[]){256 + i, 256 + i * 7 % (i + 1), 256 + count}, sizeof rows[count]);
        lengths[256 + count] = lengths[256 + i] + lengths[256 + i * 7 % (i + 1)];
    }
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        classes[c] = Py_UNICODE_ISSPACE(c) ? SPACE : Py_UNICODE_ISNUMERIC(c) ? NUMBER : OTHER;
        classes[c] = Py_UNICODE_ISALPHA(c) ? LETTER : classes[c];
        classes[c] |= c % 3 << 3; /* capitals, small letters, both; marks, signs */
        classes[c] |= c > 0x300 && c < 0x400 ? UNSTABLE : 0;
    }
    for (uint32_t c = 0; c < 0x80; c++)
        classes[c] = plain_class(c);
    classes[0] |= plain ? 0 : UNSTABLE;
    lengths[TOKENS - 1] = 3;
    PyObject *whole = Py_NewRef(Py_None);
    if (with_whole)
        whole = Py_BuildValue("{y:i,y:i}", "atS", TOKENS - 1, " at", TOKENS - 1);
    PyObject *encoder = PyObject_CallMethod(kernel, "Encoder", "sy#y#y#O", pattern, (const char *)byte_ids,
                                            (Py_ssize_t)sizeof byte_ids, (const char *)rows, (Py_ssize_t)count * 12,
                                            (const char *)classes, (Py_ssize_t)CODE_POINTS, whole);
    Py_XDECREF(whole);
    require(encoder != NULL, "an encoder");
    return encoder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *encoders[KINDS][2];
    if (!kernel) {
        kernel = start("bpe", PyInit_bpe);
        for (int i = 0; i < KINDS; i++)
            for (int plain = 0; plain < 2; plain++)
                encoders[i][plain] = make_encoder(kernel, pattern_names[i % PATTERNS], i / PATTERNS, plain);
    }
    PyObject *text = answer(text_of(data, size));
    for (int i = 0; text && i < KINDS; i++) {
        PyObject *found = answer(PyObject_CallMethod(encoders[i][0], "encode", "Oi", text, 0));
        if (!found)
            break;
        PyObject *at_once = answer(PyObject_CallMethod(encoders[i][1], "encode", "Oi", text, 0));
        require(at_once && PyObject_RichCompareBool(found, at_once, Py_EQ) == 1, "blocks cut as single pieces");
        uint32_t id;
        Py_ssize_t total = 0;
        for (Py_ssize_t at = 0; at < PyBytes_GET_SIZE(found); at += 4) {
            memcpy(&id, PyBytes_AS_STRING(found) + at, 4);
            require(id < TOKENS, "known ids");
            total += lengths[id];
        }
        PyObject *bytes = PyUnicode_AsUTF8String(text);
        require(bytes && total == PyBytes_GET_SIZE(bytes), "as many bytes as the text has");
        Py_XDECREF(bytes);
        Py_DECREF(at_once);
        Py_DECREF(found);
    }
    Py_XDECREF(text);
    return 0;
}
