/* Byte-level byte-pair encoding: text in, token ids out.
 *
 * The text's UTF-8 bytes are cut into pieces by a hand-written splitter that matches one of the published regular
 * expressions (include/bpe_split.h), and each piece is merged lowest rank first, leftmost first (Sennrich et al. 2016;
 * the order of Hugging Face tokenizers; include/bpe_merge.h). Pieces of natural text repeat, so the ids of short pieces
 * are kept in a direct-mapped cache that compares the whole piece: it changes the speed and never the result.
 *
 * Cost: linear in the text; a piece of n bytes costs O(n log n). Pieces chosen to meet in one slot of the cache are
 * merged each time, which costs what as many different pieces do; its hash is fixed. Memory: 16 MiB of cache, 1.1 MiB of
 * classes and 16 bytes per hash slot of merges for an encoder; while encoding, 4 bytes per token, and about 28 bytes
 * per byte of the longest piece. Safety: arguments are checked at entry; an encoder is used with the interpreter's lock
 * held and calls no Python code while it encodes, so threads may share one. */
#include "kernel.h"

#include "large_pages.h"

#include "bpe_merge.h"
#include "bpe_split.h"

enum { CODE_POINTS = 0x110000, CACHE_BITS = 17, KEY_BYTES = 31, CACHED_IDS = 7, BLOCK = 64, WAYS = 2 };

typedef struct {
    uint64_t key[4]; /* up to 31 bytes of the piece, zero padded; the last byte is its length, 0 in an empty slot */
    uint32_t ids[CACHED_IDS];
    uint32_t count;
} Slot;

typedef struct {
    PyObject_HEAD
    Merges merges;
    uint8_t *classes; /* one per code point */
    Slot *slots; /* sets of WAYS, each slot in a cache line of its own; the first of a set was used or filled last */
    PyObject *whole; /* own dict of pieces that are tokens as they stand, bytes to int, or NULL */
    uint32_t *out;
    size_t count, capacity;
    size_t misses; /* pieces that were not in the cache, for tests */
    int pattern;
} Encoder;

/* ---- one piece -------------------------------------------------------------------------------------------------- */

static int reserve(Encoder *self, size_t more) {
    if (more <= self->capacity - self->count) return 0;
    size_t capacity = self->capacity + self->capacity / 2 + more;
    uint32_t *out = PyMem_RawRealloc(self->out, capacity * sizeof(uint32_t));
    if (!out) {
        PyErr_NoMemory();
        return -1;
    }
    self->out = out;
    self->capacity = capacity;
    return 0;
}

/* Merge a piece that is not in the cache, behind the ids so far; `out` has room. */
static int encode_piece(Encoder *self, const uint8_t *piece, size_t n) {
    uint32_t *ids = self->out + self->count;
    if (self->whole) {
        PyObject *key = PyBytes_FromStringAndSize((const char *)piece, (Py_ssize_t)n);
        if (!key) return -1;
        PyObject *id = PyDict_GetItemWithError(self->whole, key);
        Py_DECREF(key);
        if (id) {
            ids[0] = (uint32_t)PyLong_AsUnsignedLong(id); /* check_whole has seen it */
            self->count++;
            return 0;
        }
        if (PyErr_Occurred()) return -1;
    }
    size_t count = n <= SMALL ? merge_small(&self->merges, piece, n, ids) : merge_large(&self->merges, piece, n, ids);
    if (count == SIZE_MAX) {
        PyErr_NoMemory();
        return -1;
    }
    self->count += count;
    return 0;
}

/* Read from 32 - n on: what keeps n of 32 bytes. */
static const uint8_t keep[64] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

/* The piece's bytes and its length in the last byte. */
static inline void load_key(uint64_t key[4], const uint8_t *piece, size_t n, const uint8_t *end) {
    uint64_t word[4] = {0, 0, 0, 0}, mask[4];
    if (end - piece >= 32)
        memcpy(word, piece, 32);
    else
        memcpy(word, piece, n);
    memcpy(mask, keep + 32 - n, 32);
    key[0] = word[0] & mask[0];
    key[1] = word[1] & mask[1];
    key[2] = word[2] & mask[2];
    key[3] = (word[3] & mask[3]) | (uint64_t)n << 56;
}

/* Pieces are looked up in blocks, so that the slots of a whole block travel from memory at the same time. */
typedef struct {
    const uint8_t *start;
    size_t n;
    Slot *slot;
    uint64_t key[4];
} Piece;

static inline Slot *slot_of(const Encoder *self, const uint64_t key[4]) {
    uint64_t hash = (key[0] ^ (key[1] * 0xC2B2AE3D27D4EB4FULL) ^ (key[2] * 0x165667B19E3779F9ULL) ^ key[3]);
    hash *= 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93ULL;
    return &self->slots[WAYS * (hash >> (64 - CACHE_BITS))];
}

static inline int has_key(const Slot *slot, const uint64_t key[4]) {
    return !((slot->key[0] ^ key[0]) | (slot->key[1] ^ key[1]) | (slot->key[2] ^ key[2]) | (slot->key[3] ^ key[3]));
}

static inline int emit(Encoder *self, const Piece *piece) {
    if (piece->n + CACHED_IDS > self->capacity - self->count && reserve(self, piece->n + CACHED_IDS)) return -1;
    Slot *slot = piece->slot;
    const uint64_t *key = piece->key;
    if (!slot) return encode_piece(self, piece->start, piece->n);
    if (!has_key(slot, key)) {
        Slot *other = slot + 1, kept = *slot;
        if (!has_key(other, key)) {
            size_t before = self->count;
            self->misses++;
            if (encode_piece(self, piece->start, piece->n)) return -1;
            if (self->count - before > CACHED_IDS) return 0;
            *other = kept;
            memcpy(slot->key, key, sizeof slot->key);
            slot->count = (uint32_t)(self->count - before);
            memcpy(slot->ids, self->out + before, slot->count * sizeof(uint32_t));
            return 0;
        }
        *slot = *other;
        *other = kept;
    }
    memcpy(self->out + self->count, slot->ids, sizeof slot->ids);
    self->count += slot->count;
    return 0;
}

INLINE int encode_all(Encoder *self, const uint8_t *p, const uint8_t *end, unsigned *all_seen, int pattern) {
    const uint8_t *classes = self->classes;
    unsigned seen = 0; /* by itself, so that it can stay in a register */
    Piece block[BLOCK];
    while (p < end) {
        size_t pieces = 0;
        for (; pieces < BLOCK && p < end; pieces++) {
            Piece *piece = &block[pieces];
            const uint8_t *stop = next_piece(classes, p, end, &seen, pattern);
            piece->start = p;
            piece->n = (size_t)(stop - p);
            piece->slot = NULL;
            if (piece->n <= KEY_BYTES) {
                load_key(piece->key, p, piece->n, end);
                piece->slot = slot_of(self, piece->key);
                __builtin_prefetch(piece->slot);
            }
            p = stop;
        }
        for (size_t i = 0; i < pieces; i++)
            if (emit(self, &block[i])) return -1;
    }
    *all_seen = seen;
    return 0;
}

/* One copy of the loop per pattern, so that each is compiled with its splitter inside. */
static int encode_pattern(Encoder *self, const uint8_t *p, const uint8_t *end, unsigned *seen) {
    switch (self->pattern) {
    case GPT2: return encode_all(self, p, end, seen, GPT2);
    case LLAMA3: return encode_all(self, p, end, seen, LLAMA3);
    case QWEN2: return encode_all(self, p, end, seen, QWEN2);
    case CL100K: return encode_all(self, p, end, seen, CL100K);
    case O200K: return encode_all(self, p, end, seen, O200K);
    case TEKKEN: return encode_all(self, p, end, seen, TEKKEN);
    default: return encode_all(self, p, end, seen, DEEPSEEK);
    }
}

/* ---- the Python type -------------------------------------------------------------------------------------------- */

static PyObject *Encoder_encode(Encoder *self, PyObject *args) {
    PyObject *text, *holder = NULL, *result = NULL;
    int stable = 0, failed;
    if (!PyArg_ParseTuple(args, "U|p:encode", &text, &stable)) return NULL;
    const char *data;
    Py_ssize_t size;
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        data = PyUnicode_DATA(text);
        size = PyUnicode_GET_LENGTH(text);
    } else { /* not AsUTF8AndSize, which would keep the copy alive as long as the text */
        holder = PyUnicode_AsUTF8String(text);
        if (!holder) return NULL;
        data = PyBytes_AS_STRING(holder);
        size = PyBytes_GET_SIZE(holder);
    }
    if ((uint64_t)size >= NONE) {
        Py_XDECREF(holder);
        return PyErr_Format(PyExc_ValueError, "a text of %zd bytes given, less than 4 GiB is allowed", size);
    }
    const uint8_t *p = (const uint8_t *)data, *end = p + size;
    unsigned seen = 0;
    self->count = 0;
    failed = encode_pattern(self, p, end, &seen);
    if (!failed) {
        if (stable && (seen & UNSTABLE))
            result = Py_NewRef(Py_None);
        else
            result = PyBytes_FromStringAndSize((const char *)self->out, (Py_ssize_t)(self->count * sizeof(uint32_t)));
    }
    Py_XDECREF(holder);
    if (self->capacity > 1 << 20) {
        PyMem_RawFree(self->out);
        self->out = NULL;
        self->capacity = 0;
    }
    return result;
}

/* A copy of `whole` that holds bytes and 32-bit ids alone, so that looking a piece up runs no code but ours. */
static PyObject *check_whole(PyObject *whole) {
    PyObject *copy = PyDict_New(), *piece, *id;
    Py_ssize_t at = 0;
    while (copy && PyDict_Next(whole, &at, &piece, &id)) {
        int overflow = 0;
        long long value = PyLong_CheckExact(id) ? PyLong_AsLongLongAndOverflow(id, &overflow) : -1;
        if (!PyBytes_CheckExact(piece) || value < 0 || value > UINT32_MAX || overflow) {
            PyErr_SetString(PyExc_ValueError, "whole: pieces are bytes and ids are int from 0 to 2^32 - 1");
            Py_CLEAR(copy);
        } else if (PyDict_SetItem(copy, piece, id)) {
            Py_CLEAR(copy);
        }
    }
    return copy;
}

static int fill(Encoder *self, const Py_buffer *byte_ids, const Py_buffer *merges, const Py_buffer *classes,
                PyObject *whole) {
    self->classes = PyMem_RawMalloc(CODE_POINTS);
    self->slots = take_pages(((size_t)WAYS << CACHE_BITS) * sizeof(Slot));
    if (!self->classes || !self->slots
        || fill_merges(&self->merges, byte_ids->buf, merges->buf, (size_t)merges->len / 12)) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(self->classes, classes->buf, CODE_POINTS);
    return whole != Py_None && !(self->whole = check_whole(whole)) ? -1 : 0;
}

static PyObject *Encoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    enum { BYTE_IDS, MERGES, CLASSES, BUFFERS };
    static const Array arrays[] = {{"byte_ids", RAW32, 0}, {"merges", RAW32, 0}, {"classes", FLAG, 0}};
    static char *names[] = {"pattern", "byte_ids", "merges", "classes", "whole", NULL};
    const char *pattern;
    PyObject *given[BUFFERS], *whole = Py_None;
    Py_buffer b[BUFFERS];
    Encoder *self = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOOO|O:Encoder", names, &pattern, &given[BYTE_IDS], &given[MERGES],
                                     &given[CLASSES], &whole)
        || take_arrays(arrays, given, b, BUFFERS))
        return NULL;
    int chosen = -1;
    for (int i = 0; i < PATTERNS; i++)
        if (!strcmp(pattern, pattern_names[i])) chosen = i;
    if (chosen < 0)
        PyErr_Format(PyExc_ValueError, "pattern: %.100s given, gpt2, llama3, qwen2, cl100k, o200k, tekken or deepseek is allowed",
                     pattern);
    else if (b[BYTE_IDS].len != 256 * sizeof(uint32_t))
        PyErr_SetString(PyExc_ValueError, "byte_ids: 256 uint32 values are needed");
    else if (b[MERGES].len % (3 * sizeof(uint32_t)) || (uint64_t)b[MERGES].len / 12 >= NONE / 4)
        PyErr_SetString(PyExc_ValueError, "merges: rows of 3 uint32 values (left, right, merged) are needed");
    else if (b[CLASSES].len != CODE_POINTS)
        PyErr_SetString(PyExc_ValueError, "classes: one byte per code point is needed");
    else if (whole != Py_None && !PyDict_Check(whole))
        PyErr_SetString(PyExc_TypeError, "whole: a dict of bytes to int, or None, is needed");
    else
        self = (Encoder *)type->tp_alloc(type, 0);
    if (self) {
        self->pattern = chosen;
        if (fill(self, &b[BYTE_IDS], &b[MERGES], &b[CLASSES], whole)) Py_CLEAR(self);
    }
    release_arrays(b, BUFFERS);
    return (PyObject *)self;
}

/* The ids of one piece by merges alone, whatever `whole` holds. */
static PyObject *Encoder_merge(Encoder *self, PyObject *arg) {
    char *piece;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(arg, &piece, &size)) return NULL;
    if ((uint64_t)size >= NONE) return PyErr_Format(PyExc_ValueError, "a piece of %zd bytes given", size);
    PyObject *whole = self->whole, *result = NULL;
    self->whole = NULL;
    self->count = 0;
    if (!reserve(self, (size_t)size + CACHED_IDS) && !encode_piece(self, (const uint8_t *)piece, (size_t)size))
        result = PyBytes_FromStringAndSize((const char *)self->out, (Py_ssize_t)(self->count * sizeof(uint32_t)));
    self->whole = whole;
    return result;
}

static PyObject *Encoder_work(Encoder *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("nn", (Py_ssize_t)self->misses, (Py_ssize_t)self->merges.steps);
}

static void Encoder_dealloc(Encoder *self) {
    PyTypeObject *type = Py_TYPE(self);
    free_pages(self->merges.slots, (self->merges.mask + 1) * sizeof(Merge));
    PyMem_RawFree(self->classes);
    free_pages(self->slots, ((size_t)WAYS << CACHE_BITS) * sizeof(Slot));
    PyMem_RawFree(self->out);
    Py_XDECREF(self->whole);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Encoder_methods[] = {
    {"encode", (PyCFunction)Encoder_encode, METH_VARARGS,
     "encode(text, stable=False) -> bytes of native uint32 ids, one per token.\n\n"
     "With stable, None if the text holds a character whose class carries the unstable bit (4).\n"
     "UnicodeEncodeError for lone surrogates, MemoryError, ValueError from 4 GiB."},
    {"merge", (PyCFunction)Encoder_merge, METH_O,
     "merge(piece) -> bytes of native uint32 ids of one piece by merges alone, whatever `whole` holds."},
    {"work", (PyCFunction)Encoder_work, METH_NOARGS,
     "work() -> (pieces that the cache did not hold, slots passed over in the table of merges) so far; for tests."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Encoder_slots[] = {
    {Py_tp_doc, "Encoder(pattern, byte_ids, merges, classes, whole=None): byte-level BPE.\n\n"
                "byte_ids: 256 uint32. merges: rows of 3 uint32 (left id, right id, merged id) in rank order.\n"
                "classes: a byte per code point, 0 other, 1 letter, 2 number, 3 whitespace, +4 unstable; o200k and\n"
                "tekken: letters +8 Lu Lt, +16 Ll, +24 Lm Lo; these and deepseek: others +8 M, +16 P S.\n"
                "whole: pieces that are a token as they stand."},
    {Py_tp_new, Encoder_new},
    {Py_tp_dealloc, Encoder_dealloc},
    {Py_tp_methods, Encoder_methods},
    {0, NULL}};

static PyType_Spec Encoder_spec = {"transforms.native.bpe.Encoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT,
                                   Encoder_slots};

static int module_exec(PyObject *module) {
    if (draw_key(&merge_key)) return -1;
    PyObject *type = PyType_FromSpec(&Encoder_spec);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Encoder", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "bpe", "Byte-level byte-pair encoding.", 0, NULL,
                                    module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bpe(void) { return PyModuleDef_Init(&module); }
