/* Byte-level byte-pair encoding: text in, token ids out.
 *
 * The text's UTF-8 bytes are cut into pieces as one of the published regular expressions says: 64 bytes of ASCII at once
 * (include/bpe_blocks.h), or one piece after the other (include/bpe_split.h). Each piece is merged lowest rank first,
 * leftmost first (Sennrich et al. 2016; the order of Hugging Face tokenizers; include/bpe_merge.h). Pieces of natural
 * text repeat, so the ids of short ones are kept in two tables of fixed size that compare the whole piece: they change
 * the speed and never the result.
 *
 * Cost: linear in the text; a piece of n bytes costs O(n log n). Pieces chosen to meet in one slot of a table are merged
 * each time, which costs what as many different pieces do; its hash is fixed. Memory: 24 MiB of slots, 1.6 MiB of
 * classes and merges of bytes, 25 to 50 bytes per merge for an encoder; while encoding, 4 bytes per token, and about 28
 * bytes per byte of the longest piece. Safety: arguments are checked at entry; an encoder is used with the interpreter's
 * lock held and calls no Python code while it encodes, so threads may share one. */
#include "kernel.h"

#include "large_pages.h"

#include "bpe_merge.h"
#include "bpe_split.h"

#include "bpe_blocks.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

enum { CODE_POINTS = 0x110000, SHORT_BYTES = 15, SHORT_IDS = 3, LONG_BYTES = 31, LONG_IDS = 7, QUEUE = 128 };
enum { SHORT_BITS = 18, LONG_BITS = 16, ROOM = QUEUE * (SHORT_IDS + 1), MORE_IDS = 255 }; /* sets; ids behind those written so far */

/* A key is up to 15 or 31 bytes of a piece, zero padded; its last byte is their number, 0 in an empty slot. */
typedef struct {
    uint64_t key[2];
    uint32_t ids[SHORT_IDS], count;
} Short;

typedef struct {
    uint64_t key[4];
    uint32_t ids[LONG_IDS], count;
} Long;

/* Two slots each, the first filled last; the short ones in one cache line. */
typedef struct {
    Short slots[2];
} ShortSet;
typedef struct {
    Long slots[2];
} LongSet;

typedef struct {
    PyObject_HEAD
    Merges merges;
    uint8_t *classes; /* one per code point */
    ShortSet *shorts;
    LongSet *longs;
    PyObject *whole; /* own dict of pieces that are tokens as they stand, bytes to int, or NULL */
    uint32_t *out;
    size_t count, capacity;
    size_t misses, single; /* pieces that were in neither cache; those that were cut one by one; for tests */
    int pattern, plain; /* plain: blocks of ASCII may be cut at once */
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

/* ---- the caches ------------------------------------------------------------------------------------------------- */

static inline uint64_t mixed(uint64_t hash) {
    hash *= 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    return hash * 0xD6E8FEB86659FD93ULL;
}

static inline Long *long_slots(const Encoder *self, const uint64_t key[4]) {
    uint64_t hash = key[0] ^ key[1] * 0xC2B2AE3D27D4EB4FULL ^ key[2] * 0x165667B19E3779F9ULL ^ key[3];
    return self->longs[mixed(hash) >> (64 - LONG_BITS)].slots;
}

/* Pieces wait in a queue, so that the slots of many travel from memory at the same time. */
typedef struct {
    const uint8_t *start;
    size_t n;
    ShortSet *set; /* NULL for a longer piece */
    uint64_t key[2];
} Piece;

/* The ids of a piece that no short slot holds, from the long ones, or merged; they are kept where they fit. `kept`: its
 * short slot says that it has more ids. Behind the ids there is ROOM again. */
static int encode_other(Encoder *self, const Piece *piece, int kept) {
    size_t before = self->count, n = piece->n;
    if (reserve(self, n + LONG_IDS + ROOM)) return -1;
    uint64_t key[4] = {0, 0, 0, 0};
    Long *slots = NULL;
    if (n <= LONG_BYTES && (kept || !piece->set)) {
        memcpy(key, piece->start, n);
        key[3] |= (uint64_t)n << 56;
        slots = long_slots(self, key);
        for (int way = 0; way < 2; way++) {
            if (memcmp(slots[way].key, key, sizeof key)) continue;
            memcpy(self->out + before, slots[way].ids, sizeof slots[way].ids);
            self->count += slots[way].count;
            return 0;
        }
    }
    self->misses++;
    if (encode_piece(self, piece->start, n)) return -1;
    size_t count = self->count - before;
    const uint32_t *ids = self->out + before;
    if (slots && count <= LONG_IDS) {
        slots[1] = slots[0];
        memcpy(slots[0].key, key, sizeof key);
        memcpy(slots[0].ids, ids, count * sizeof *ids);
        slots[0].count = (uint32_t)count;
    } else if (piece->set && !kept) {
        Short *shorts = piece->set->slots;
        shorts[1] = shorts[0];
        shorts[0] = (Short){{piece->key[0], piece->key[1]}, {0}, count <= SHORT_IDS ? (uint32_t)count : MORE_IDS};
        memcpy(shorts[0].ids, ids, (count < SHORT_IDS ? count : SHORT_IDS) * sizeof *ids);
    }
    return reserve(self, ROOM);
}

/* What keeps n of 16 bytes, read from 16 - n on. */
static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

/* `readable`: 16 bytes can be read at the start, whatever n is. */
INLINE void enqueue(const Encoder *self, Piece *piece, const uint8_t *start, size_t n, int readable) {
    piece->start = start;
    piece->n = n;
    piece->set = NULL;
    if (n > SHORT_BYTES) return;
    uint64_t word[2] = {0, 0}, mask[2];
    memcpy(mask, keep + 16 - n, 16);
    memcpy(word, start, readable ? 16 : n);
    piece->key[0] = word[0] & mask[0];
    piece->key[1] = (word[1] & mask[1]) | (uint64_t)n << 56;
    uint64_t hash = mixed(piece->key[0] ^ piece->key[1] * 0xC2B2AE3D27D4EB4FULL);
    piece->set = &self->shorts[hash >> (64 - SHORT_BITS)];
    __builtin_prefetch(piece->set);
}

/* The ids of `count` pieces, behind those so far. There is ROOM, and again afterwards. */
static int encode_queue(Encoder *self, const Piece *queue, size_t count) {
    uint32_t *out = self->out + self->count;
    for (const Piece *piece = queue; piece < queue + count; piece++) {
        int kept = 0;
        if (piece->set) {
            const Short *slots = piece->set->slots; /* no branch says which one it is: nothing could foresee that */
            uint64_t first = (slots[0].key[0] ^ piece->key[0]) | (slots[0].key[1] ^ piece->key[1]);
            uint64_t second = (slots[1].key[0] ^ piece->key[0]) | (slots[1].key[1] ^ piece->key[1]);
            const Short *slot = &slots[first != 0];
            uint32_t ids = slot->count;
            if (LIKELY(((first == 0) | (second == 0)) & (ids != MORE_IDS))) {
                memcpy(out, slot->ids, sizeof slot->ids + sizeof slot->count); /* what is too much is overwritten */
                out += ids;
                continue;
            }
            kept = !first || !second;
        }
        self->count = (size_t)(out - self->out);
        if (encode_other(self, piece, kept)) return -1;
        out = self->out + self->count;
    }
    self->count = (size_t)(out - self->out);
    return reserve(self, ROOM);
}

INLINE int encode_all(Encoder *self, const uint8_t *p, const uint8_t *end, unsigned *all_seen, int pattern) {
    const uint8_t *classes = self->classes;
    unsigned seen = 0; /* by itself, so that it can stay in a register */
    Piece queue[QUEUE];
    size_t waiting = 0;
    if (reserve(self, ROOM)) return -1;
    while (p < end) {
        if (waiting > QUEUE - BLOCK_BYTES) {
            if (encode_queue(self, queue, waiting)) return -1;
            waiting = 0;
        }
        if (self->plain && p[0] < 0x80 && end - p >= BLOCK_BYTES + BEHIND_BLOCK && p[1] < 0x80) {
            uint64_t starts = piece_starts(p, pattern) & ~1ULL;
            if (starts) {
                size_t from = 0;
                do {
                    size_t to = (size_t)__builtin_ctzll(starts);
                    enqueue(self, &queue[waiting++], p + from, to - from, 1);
                    from = to;
                } while ((starts &= starts - 1));
                p += from;
                continue;
            }
        }
        const uint8_t *stop = next_piece(classes, p, end, &seen, pattern);
        enqueue(self, &queue[waiting++], p, (size_t)(stop - p), end - p >= 16);
        self->single++;
        p = stop;
    }
    *all_seen = seen;
    return encode_queue(self, queue, waiting);
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
    self->shorts = take_pages(sizeof(ShortSet) << SHORT_BITS);
    self->longs = take_pages(sizeof(LongSet) << LONG_BITS);
    if (!self->classes || !self->shorts || !self->longs
        || fill_merges(&self->merges, byte_ids->buf, merges->buf, (size_t)merges->len / 12)) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(self->classes, classes->buf, CODE_POINTS);
    self->plain = is_plain_ascii(self->classes, self->pattern);
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
    else if ((((const uint8_t *)b[CLASSES].buf)[' '] & CLASS) != SPACE) /* patterns take the one before a word along */
        PyErr_SetString(PyExc_ValueError, "classes: the space must be whitespace (3)");
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
    if (!reserve(self, (size_t)size) && !encode_piece(self, (const uint8_t *)piece, (size_t)size))
        result = PyBytes_FromStringAndSize((const char *)self->out, (Py_ssize_t)(self->count * sizeof(uint32_t)));
    self->whole = whole;
    return result;
}

static PyObject *Encoder_work(Encoder *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("nnn", (Py_ssize_t)self->misses, (Py_ssize_t)self->merges.steps, (Py_ssize_t)self->single);
}

static void Encoder_dealloc(Encoder *self) {
    PyTypeObject *type = Py_TYPE(self);
    free_merges(&self->merges);
    PyMem_RawFree(self->classes);
    free_pages(self->shorts, sizeof(ShortSet) << SHORT_BITS);
    free_pages(self->longs, sizeof(LongSet) << LONG_BITS);
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
