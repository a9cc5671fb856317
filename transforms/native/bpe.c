/* Byte-level byte-pair encoding: text in, token ids out.
 *
 * The text's UTF-8 bytes are cut into pieces by a hand-written splitter that matches one of three published regular
 * expressions, and each piece is merged lowest rank first, leftmost first (Sennrich et al. 2016; the order of Hugging
 * Face tokenizers). Pieces of natural text repeat, so the ids of short pieces are kept in a direct-mapped cache that
 * compares the whole piece: it changes the speed and never the result.
 *
 * Cost: linear in the text; a piece of n bytes costs O(n log n). Memory: 8 MiB of cache, 1.1 MiB of classes and
 * 16 bytes per hash slot of merges for an encoder; while encoding, 4 bytes per token, and about 20 bytes per byte of the
 * longest piece. An encoder is used with the interpreter's lock held, so threads may share one.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { OTHER = 0, LETTER = 1, NUMBER = 2, SPACE = 3, CLASS = 3, UNSTABLE = 4 };
enum { GPT2 = 0, LLAMA3 = 1, QWEN2 = 2 };
enum { CODE_POINTS = 0x110000, SMALL = 64, CACHE_BITS = 17, KEY_BYTES = 31, CACHED_IDS = 7 };

#define NONE UINT32_MAX

typedef struct {
    uint64_t key[4]; /* up to 31 bytes of the piece, zero padded; the last byte is its length, 0 in an empty slot */
    uint32_t ids[CACHED_IDS];
    uint32_t count;
} Slot;

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* NONE in an empty slot */
    uint32_t id;
} Merge;

typedef struct {
    PyObject_HEAD
    uint32_t byte_ids[256];
    uint8_t *classes; /* one per code point */
    Merge *merges;
    size_t merge_mask;
    Slot *slots;
    PyObject *whole; /* dict of pieces that are tokens as they stand, or NULL */
    uint32_t *out;
    size_t count, capacity;
    int pattern;
} Encoder;

/* ---- merging ---------------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ULL;
    return x ^ (x >> 29);
}

static inline const Merge *find_merge(const Encoder *self, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    for (size_t i = mix(pair) & self->merge_mask;; i = (i + 1) & self->merge_mask) {
        const Merge *merge = &self->merges[i];
        if (merge->rank == NONE || merge->pair == pair) return merge;
    }
}

/* A piece of at most SMALL bytes: look for the lowest rank again after each merge. Writes ids, returns their count. */
static size_t merge_small(const Encoder *self, const uint8_t *piece, size_t n, uint32_t *ids) {
    uint32_t ranks[SMALL], merged[SMALL];
    for (size_t i = 0; i < n; i++) ids[i] = self->byte_ids[piece[i]];
    for (size_t i = 0; i + 1 < n; i++) {
        const Merge *merge = find_merge(self, ids[i], ids[i + 1]);
        ranks[i] = merge->rank;
        merged[i] = merge->id;
    }
    while (n > 1) {
        size_t best = 0;
        uint32_t rank = ranks[0];
        for (size_t i = 1; i + 1 < n; i++) {
            if (ranks[i] < rank) {
                rank = ranks[i];
                best = i;
            }
        }
        if (rank == NONE) break;
        ids[best] = merged[best];
        n--;
        for (size_t i = best + 1; i < n; i++) ids[i] = ids[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) {
            ranks[i] = ranks[i + 1];
            merged[i] = merged[i + 1];
        }
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const Merge *merge = find_merge(self, ids[i], ids[i + 1]);
            ranks[i] = merge->rank;
            merged[i] = merge->id;
        }
    }
    return n;
}

typedef struct {
    uint32_t id, previous, next; /* id is NONE once merged into its left neighbour */
} Symbol;

static void sift_down(uint64_t *heap, size_t size, size_t i) {
    uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

static void sift_up(uint64_t *heap, size_t i) {
    uint64_t value = heap[i];
    while (i > 0 && heap[(i - 1) / 2] > value) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = value;
}

/* A long piece: a heap of rank << 32 | position. An entry is stale when the pair at its position no longer has its
 * rank; a rank belongs to one pair, so this test is exact. Each merge takes one entry and adds at most two, so the
 * heap never holds more than 2 n. Returns the count of ids, or SIZE_MAX without memory. */
static size_t merge_large(const Encoder *self, const uint8_t *piece, size_t n, uint32_t *ids) {
    Symbol *symbols = PyMem_RawMalloc(n * sizeof(Symbol));
    uint64_t *heap = PyMem_RawMalloc(2 * n * sizeof(uint64_t));
    if (!symbols || !heap) {
        PyMem_RawFree(symbols);
        PyMem_RawFree(heap);
        return SIZE_MAX;
    }
    size_t size = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        symbols[i].id = self->byte_ids[piece[i]];
        symbols[i].previous = i ? (uint32_t)(i - 1) : NONE;
        symbols[i].next = i + 1 < n ? (uint32_t)(i + 1) : NONE;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        uint32_t rank = find_merge(self, symbols[i].id, symbols[i + 1].id)->rank;
        if (rank != NONE) heap[size++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = size / 2; i-- > 0;) sift_down(heap, size, i);
    while (size) {
        uint32_t rank = (uint32_t)(heap[0] >> 32), at = (uint32_t)heap[0];
        heap[0] = heap[--size];
        if (size) sift_down(heap, size, 0);
        Symbol *left = &symbols[at];
        if (left->id == NONE || left->next == NONE) continue;
        Symbol *right = &symbols[left->next];
        const Merge *merge = find_merge(self, left->id, right->id);
        if (merge->rank != rank) continue;
        left->id = merge->id;
        left->next = right->next;
        right->id = NONE;
        if (left->next != NONE) {
            symbols[left->next].previous = at;
            uint32_t fresh = find_merge(self, left->id, symbols[left->next].id)->rank;
            if (fresh != NONE) {
                heap[size] = (uint64_t)fresh << 32 | at;
                sift_up(heap, size++);
            }
        }
        if (left->previous != NONE) {
            uint32_t fresh = find_merge(self, symbols[left->previous].id, left->id)->rank;
            if (fresh != NONE) {
                heap[size] = (uint64_t)fresh << 32 | left->previous;
                sift_up(heap, size++);
            }
        }
    }
    for (uint32_t i = 0; i != NONE; i = symbols[i].next) ids[count++] = symbols[i].id;
    PyMem_RawFree(symbols);
    PyMem_RawFree(heap);
    return count;
}

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
            unsigned long value = PyLong_AsUnsignedLong(id);
            if (PyErr_Occurred()) return -1;
            ids[0] = (uint32_t)value;
            self->count++;
            return 0;
        }
        if (PyErr_Occurred()) return -1;
    }
    size_t count = n <= SMALL ? merge_small(self, piece, n, ids) : merge_large(self, piece, n, ids);
    if (count == SIZE_MAX) {
        PyErr_NoMemory();
        return -1;
    }
    self->count += count;
    return 0;
}

static inline void load_key(uint64_t key[4], const uint8_t *piece, size_t n, const uint8_t *end) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - piece >= 32) {
        memcpy(key, piece, 32);
        if (n < 8) {
            key[0] &= ((uint64_t)1 << (8 * n)) - 1;
            key[1] = key[2] = key[3] = 0;
        } else if (n < 16) {
            key[1] &= ((uint64_t)1 << (8 * (n - 8))) - 1;
            key[2] = key[3] = 0;
        } else if (n < 24) {
            key[2] &= ((uint64_t)1 << (8 * (n - 16))) - 1;
            key[3] = 0;
        } else {
            key[3] &= ((uint64_t)1 << (8 * (n - 24))) - 1;
        }
        key[3] |= (uint64_t)n << 56;
        return;
    }
#endif
    memset(key, 0, 32);
    memcpy(key, piece, n);
    ((uint8_t *)key)[31] = (uint8_t)n;
}

static inline int emit(Encoder *self, const uint8_t *piece, const uint8_t *stop, const uint8_t *end) {
    size_t n = (size_t)(stop - piece);
    if (n + CACHED_IDS > self->capacity - self->count && reserve(self, n + CACHED_IDS)) return -1;
    if (n > KEY_BYTES) return encode_piece(self, piece, n);
    uint64_t key[4];
    load_key(key, piece, n, end);
    uint64_t hash = (key[0] ^ (key[1] * 0xC2B2AE3D27D4EB4FULL) ^ (key[2] * 0x165667B19E3779F9ULL) ^ key[3]);
    hash *= 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93ULL;
    Slot *slot = &self->slots[hash >> (64 - CACHE_BITS)];
    if (slot->key[0] == key[0] && slot->key[1] == key[1] && slot->key[2] == key[2] && slot->key[3] == key[3]) {
        memcpy(self->out + self->count, slot->ids, sizeof slot->ids);
        self->count += slot->count;
        return 0;
    }
    size_t before = self->count;
    if (encode_piece(self, piece, n)) return -1;
    if (self->count - before <= CACHED_IDS) {
        memcpy(slot->key, key, sizeof key);
        slot->count = (uint32_t)(self->count - before);
        memcpy(slot->ids, self->out + before, slot->count * sizeof(uint32_t));
    }
    return 0;
}

/* ---- splitting -------------------------------------------------------------------------------------------------- */

/* Class of the character at p, and its size; the text is valid UTF-8, as CPython made it. */
static inline unsigned class_at(const uint8_t *classes, const uint8_t *p, size_t *size) {
    uint32_t c = p[0];
    if (c < 0x80) {
        *size = 1;
    } else if (c < 0xE0) {
        *size = 2;
        c = (c & 0x1F) << 6 | (p[1] & 0x3F);
    } else if (c < 0xF0) {
        *size = 3;
        c = (c & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    } else {
        *size = 4;
        c = (c & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    }
    return classes[c];
}

static inline const uint8_t *skip(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned class,
                                  unsigned *seen) {
    size_t size;
    for (; p < end; p += size) {
        unsigned found = class_at(classes, p, &size);
        if ((found & CLASS) != class) break;
        *seen |= found;
    }
    return p;
}

/* End of a contraction ('s 't 're 've 'm 'll 'd) at the apostrophe p, or p. In any case also 's with a long s. */
static inline const uint8_t *contraction(const uint8_t *p, const uint8_t *end, int any_case) {
    uint8_t fold = any_case ? 0x20 : 0;
    if (end - p < 2) return p;
    uint8_t a = p[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if (end - p < 3) return p;
    uint8_t b = p[2] | fold;
    if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return p + 3;
    if (any_case && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
    return p;
}

/* End of the whitespace piece at p: the run up to its last character if text follows, so that this one may lead a
 * word; all of it at the end of the text. With `lines`, a run that holds line ends stops behind the last of them. */
static inline const uint8_t *space_piece(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                         int lines) {
    const uint8_t *q = p, *last = p, *line = NULL;
    size_t size;
    for (; q < end; q += size) {
        unsigned found = class_at(classes, q, &size);
        if ((found & CLASS) != SPACE) break;
        *seen |= found;
        if (*q == '\n' || *q == '\r') line = q + 1;
        last = q;
    }
    if (lines && line) return line;
    return q == end || last == p ? q : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline const uint8_t *piece_gpt2(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen) {
    const uint8_t *q = p + (*p == ' ');
    size_t size;
    if (*p == '\'' && (q = contraction(p, end, 0)) != p) return q;
    if (q == end) return end;
    unsigned found = class_at(classes, q, &size);
    *seen |= found;
    if ((found & CLASS) == SPACE) return space_piece(classes, p, end, seen, 0);
    return skip(classes, q + size, end, found & CLASS, seen);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * `digits` is 3 as above, or 1 for \p{N} alone. */
static inline const uint8_t *piece_llama3(const uint8_t *classes, const uint8_t *p, const uint8_t *end, unsigned *seen,
                                          int digits) {
    size_t size, next_size;
    const uint8_t *q;
    if (*p == '\'' && (q = contraction(p, end, 1)) != p) return q;
    unsigned found = class_at(classes, p, &size), class = found & CLASS;
    *seen |= found;
    q = p + size;
    if (class == LETTER) return skip(classes, q, end, LETTER, seen);
    if (class == NUMBER) {
        for (int i = 1; i < digits && q < end && (class_at(classes, q, &size) & CLASS) == NUMBER; i++) {
            *seen |= class_at(classes, q, &size);
            q += size;
        }
        return q;
    }
    unsigned next = q < end ? class_at(classes, q, &next_size) : (unsigned)SPACE;
    if ((next & CLASS) == LETTER && *p != '\r' && *p != '\n') return skip(classes, q, end, LETTER, seen);
    if (class == OTHER || (*p == ' ' && q < end && (next & CLASS) == OTHER)) {
        q = skip(classes, q, end, OTHER, seen);
        while (q < end && (*q == '\r' || *q == '\n')) q++;
        return q;
    }
    return space_piece(classes, p, end, seen, 1);
}

static inline int encode_all(Encoder *self, const uint8_t *p, const uint8_t *end, unsigned *seen, int pattern) {
    const uint8_t *classes = self->classes;
    while (p < end) {
        const uint8_t *stop = pattern == GPT2 ? piece_gpt2(classes, p, end, seen)
                                              : piece_llama3(classes, p, end, seen, pattern == LLAMA3 ? 3 : 1);
        if (emit(self, p, stop, end)) return -1;
        p = stop;
    }
    return 0;
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
    if (self->pattern == GPT2)
        failed = encode_all(self, p, end, &seen, GPT2);
    else if (self->pattern == LLAMA3)
        failed = encode_all(self, p, end, &seen, LLAMA3);
    else
        failed = encode_all(self, p, end, &seen, QWEN2);
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

static int fill(Encoder *self, const uint32_t *byte_ids, const uint8_t *classes, const uint32_t *merges, size_t count) {
    size_t slots = 1024;
    while (slots < 3 * count) slots *= 2;
    self->merge_mask = slots - 1;
    self->merges = PyMem_RawMalloc(slots * sizeof(Merge));
    self->classes = PyMem_RawMalloc(CODE_POINTS);
    self->slots = PyMem_RawCalloc((size_t)1 << CACHE_BITS, sizeof(Slot));
    if (!self->merges || !self->classes || !self->slots) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(self->byte_ids, byte_ids, sizeof self->byte_ids);
    memcpy(self->classes, classes, CODE_POINTS);
    for (size_t i = 0; i < slots; i++) self->merges[i].rank = NONE;
    for (size_t rank = 0; rank < count; rank++) {
        Merge *merge = (Merge *)find_merge(self, merges[3 * rank], merges[3 * rank + 1]);
        merge->pair = (uint64_t)merges[3 * rank] << 32 | merges[3 * rank + 1];
        merge->rank = (uint32_t)rank; /* a pair listed twice keeps its last rank */
        merge->id = merges[3 * rank + 2];
    }
    return 0;
}

static PyObject *Encoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"pattern", "byte_ids", "merges", "classes", "whole", NULL};
    static const char *patterns[] = {"gpt2", "llama3", "qwen2"};
    const char *pattern;
    Py_buffer byte_ids, merges, classes;
    PyObject *whole = Py_None;
    Encoder *self = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sy*y*y*|O:Encoder", names, &pattern, &byte_ids, &merges, &classes,
                                     &whole))
        return NULL;
    int chosen = -1;
    for (int i = 0; i < 3; i++)
        if (!strcmp(pattern, patterns[i])) chosen = i;
    if (chosen < 0)
        PyErr_Format(PyExc_ValueError, "pattern: %s given, gpt2, llama3 or qwen2 is allowed", pattern);
    else if (byte_ids.len != 256 * sizeof(uint32_t))
        PyErr_SetString(PyExc_ValueError, "byte_ids: 256 uint32 values are needed");
    else if (merges.len % (3 * sizeof(uint32_t)) || (uint64_t)merges.len / 12 >= NONE / 4)
        PyErr_SetString(PyExc_ValueError, "merges: rows of 3 uint32 values (left, right, merged) are needed");
    else if (classes.len != CODE_POINTS)
        PyErr_SetString(PyExc_ValueError, "classes: one byte per code point is needed");
    else if (whole != Py_None && !PyDict_Check(whole))
        PyErr_SetString(PyExc_TypeError, "whole: a dict of bytes to int, or None, is needed");
    else
        self = (Encoder *)type->tp_alloc(type, 0);
    if (self) {
        self->pattern = chosen;
        self->whole = whole == Py_None ? NULL : Py_NewRef(whole);
        if (fill(self, byte_ids.buf, classes.buf, merges.buf, (size_t)merges.len / 12)) Py_CLEAR(self);
    }
    PyBuffer_Release(&byte_ids);
    PyBuffer_Release(&merges);
    PyBuffer_Release(&classes);
    return (PyObject *)self;
}

static void Encoder_dealloc(Encoder *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyMem_RawFree(self->merges);
    PyMem_RawFree(self->classes);
    PyMem_RawFree(self->slots);
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
    {NULL, NULL, 0, NULL}};

static PyType_Slot Encoder_slots[] = {
    {Py_tp_doc, "Encoder(pattern, byte_ids, merges, classes, whole=None): byte-level BPE.\n\n"
                "byte_ids: 256 uint32. merges: rows of 3 uint32 (left id, right id, merged id) in rank order.\n"
                "classes: a byte per code point, 0 other, 1 letter, 2 number, 3 whitespace, +4 unstable.\n"
                "whole: pieces that are a token as they stand."},
    {Py_tp_new, Encoder_new},
    {Py_tp_dealloc, Encoder_dealloc},
    {Py_tp_methods, Encoder_methods},
    {0, NULL}};

static PyType_Spec Encoder_spec = {"transforms.native.bpe.Encoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT,
                                   Encoder_slots};

static int module_exec(PyObject *module) {
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
