/* Any text, by each pattern, with and without whole pieces: the tokens' bytes are as many as the text's. */
#include "../../../transforms/native/bpe.c"

#include "fuzz.h"

enum { KINDS = 2 * PATTERNS, TOKENS = 600 };
static unsigned lengths[TOKENS]; /* bytes of each token */

/* Merges of any two neighbours of the alphabet, then of what they made: long chains of them. */
static PyObject *make_encoder(PyObject *kernel, const char *pattern, int with_whole)
{
    static uint32_t byte_ids[256], rows[TOKENS][3];
    static uint8_t classes[CODE_POINTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 256; i++) {
        byte_ids[i] = i;
        lengths[i] = 1;
    }
    for (uint32_t left = 'a'; left < 'i'; left++)
        for (uint32_t right = 'a'; right < 'i'; right++, count++) {
            memcpy(rows[count], (uint32_t[]){left, right, 256 + count}, sizeof rows[count]);
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
    lengths[TOKENS - 1] = 3;
    PyObject *whole = Py_NewRef(Py_None);
    if (with_whole)
        whole = Py_BuildValue("{y:i,y:i}", "abc", TOKENS - 1, " ab", TOKENS - 1);
    PyObject *encoder = PyObject_CallMethod(kernel, "Encoder", "sy#y#y#O", pattern, (const char *)byte_ids,
                                            (Py_ssize_t)sizeof byte_ids, (const char *)rows, (Py_ssize_t)count * 12,
                                            (const char *)classes, (Py_ssize_t)CODE_POINTS, whole);
    Py_XDECREF(whole);
    require(encoder != NULL, "an encoder");
    return encoder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel, *encoders[KINDS];
    if (!kernel) {
        kernel = start("bpe", PyInit_bpe);
        for (int i = 0; i < KINDS; i++)
            encoders[i] = make_encoder(kernel, pattern_names[i % PATTERNS], i / PATTERNS);
    }
    PyObject *text = answer(text_of(data, size));
    for (int i = 0; text && i < KINDS; i++) {
        PyObject *found = answer(PyObject_CallMethod(encoders[i], "encode", "Oi", text, 0)), *bytes;
        if (!found)
            break;
        uint32_t id;
        Py_ssize_t total = 0;
        for (Py_ssize_t at = 0; at < PyBytes_GET_SIZE(found); at += 4) {
            memcpy(&id, PyBytes_AS_STRING(found) + at, 4);
            require(id < TOKENS, "known ids");
            total += lengths[id];
        }
        bytes = PyUnicode_AsUTF8String(text);
        require(bytes && total == PyBytes_GET_SIZE(bytes), "as many bytes as the text has");
        Py_XDECREF(bytes);
        Py_DECREF(found);
    }
    Py_XDECREF(text);
    return 0;
}
