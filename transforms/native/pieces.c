/* SentencePiece: text in, token ids out, by BPE or by a unigram model.
 *
 * A text is normalised (include/piece_charsmap.h) and cut wherever no piece of the vocabulary holds the two characters
 * at the cut side by side: no token reaches over such a place, so each word is encoded by itself, by
 * include/piece_merge.h or include/piece_viterbi.h. Words of natural text repeat, so the ids of short words are kept in
 * a cache of two ways that compares the whole word: it changes the speed and never the result.
 *
 * Cost: linear in the text; a word of n bytes costs what the two headers say. Memory: 16 MiB of cache, 80 KiB of pairs
 * of characters, the tables of the headers; while encoding, up to 12 bytes per byte of the normalised text, and
 * that of the longest word. Safety: arguments are checked at entry; an encoder is used with the interpreter's lock held
 * and calls no Python code while it encodes, so threads may share one. */
#include "kernel.h"

#include "piece_charsmap.h"
#include "piece_merge.h"
#include "piece_viterbi.h"

enum { SETS = 1 << 17, WAYS = 2, KEY_BYTES = 31, CACHED_IDS = 6, BLOCK = 64, JOINED_BITS = 19, KEPT = 1 << 20 };
enum { LONGEST_PIECE = 512, MOST_IDS = 1 << 24 };

typedef struct {
    uint64_t key[4]; /* up to 31 bytes of the word, zero padded; the last byte is its length, 0 in an empty slot */
    uint32_t ids[CACHED_IDS];
    float below; /* the ids hold where the sum in front of the word is below this (unigram) */
    uint32_t count;
} Slot;

typedef struct {
    PyObject_HEAD
    int unigram, bytewise; /* bytewise: an unknown character is written byte by byte */
    Normalizer normalizer;
    Splitter splitter; /* unigram */
    Merger merger; /* BPE */
    Trie whole; /* BPE: pieces that are taken as they stand, before anything is merged */
    uint32_t *ids, *whole_ids; /* of each key */
    float *scores; /* of each id (unigram) */
    uint32_t byte_ids[256], unknown_id;
    uint8_t ascii_joined[128 * 128]; /* whether a piece holds two characters side by side */
    uint64_t joined[(1 << JOINED_BITS) / 64]; /* the same for all, by hash: what is not joined has no bit */
    uint8_t whole_first[256];
    Slot *slots;
    Buffer text;
    Node *nodes;
    Part *parts;
    uint32_t *out;
    size_t node_room, part_room, count, capacity;
    size_t misses, unsure; /* words not in the cache; words there whose ids could not be trusted; for tests */
    float sum; /* of the scores so far, as the library has it */
    int after_unknown;
} Encoder;

/* ---- where to cut ----------------------------------------------------------------------------------------------- */

static inline size_t joined_bit(uint32_t left, uint32_t right) {
    return (left * 0x9E3779B97F4A7C15ULL ^ right * 0xC2B2AE3D27D4EB4FULL) * 0xD6E8FEB86659FD93ULL >> (64 - JOINED_BITS);
}

static inline int are_joined(const Encoder *self, uint32_t left, uint32_t right) {
    if ((left | right) < 128) return self->ascii_joined[left << 7 | right];
    size_t bit = joined_bit(left, right);
    return self->joined[bit / 64] >> bit % 64 & 1;
}

static void fill_joined(Encoder *self, const Keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        const uint8_t *p = keys->bytes + key_start(keys, i), *end = keys->bytes + keys->ends[i];
        uint32_t left, right;
        for (p = next_character(p, &left); p < end; left = right) {
            p = next_character(p, &right);
            if ((left | right) < 128) self->ascii_joined[left << 7 | right] = 1;
            size_t bit = joined_bit(left, right);
            self->joined[bit / 64] |= 1ULL << bit % 64;
        }
    }
}

/* The end of the word at p; for a piece that is taken as it stands its number, else NONE. */
static inline const uint8_t *next_word(const Encoder *self, const uint8_t *p, const uint8_t *end, uint32_t *whole) {
    size_t length;
    *whole = NONE;
    if (self->whole_first[*p] && (*whole = trie_longest(&self->whole, p, end, &length)) != NONE) return p + length;
    uint32_t left, right;
    p = next_character(p, &left);
    while (p < end) {
        const uint8_t *next = next_character(p, &right);
        if (!are_joined(self, left, right)) break;
        if (self->whole_first[*p] && trie_longest(&self->whole, p, end, &length) != NONE) break;
        left = right;
        p = next;
    }
    return p;
}

/* ---- one word --------------------------------------------------------------------------------------------------- */

static int reserve(Encoder *self, size_t more) {
    if (more <= self->capacity - self->count) return 0;
    size_t capacity = self->capacity + self->capacity / 2 + more;
    uint32_t *out = PyMem_RawRealloc(self->out, capacity * sizeof(uint32_t));
    if (!out) return -1;
    self->out = out;
    self->capacity = capacity;
    return 0;
}

static void put_id(Encoder *self, uint32_t id) {
    self->out[self->count++] = id;
    self->after_unknown = 0;
}

/* A character that is no piece: its bytes, or the unknown id, once for several in a row. */
static void put_unknown(Encoder *self, const uint8_t *p, size_t n) {
    if (self->bytewise) {
        if (*p == ' ') p = (const uint8_t *)"\xE2\x96\x81", n = 3;
        for (size_t i = 0; i < n; i++) self->out[self->count++] = self->byte_ids[p[i]];
    } else if (!self->after_unknown) {
        self->out[self->count++] = self->unknown_id;
    }
    self->after_unknown = 1;
}

/* At least `count` elements at *room. -1 without memory. */
static int take_room(void **room, size_t *have, size_t count, size_t size) {
    if (count <= *have) return 0;
    PyMem_RawFree(*room);
    count += count / 2 + KEY_BYTES;
    *room = PyMem_RawMalloc(count * size);
    *have = *room ? count : 0;
    return *room ? 0 : -1;
}

/* Merges a word behind the ids so far. Returns how many unknown characters it has, -1 without memory. */
static int merge_word(Encoder *self, const uint8_t *word, size_t n) {
    int unknown = 0;
    if (take_room((void **)&self->parts, &self->part_room, n, sizeof(Part))) return -1;
    Part *parts = self->parts;
    size_t count = split(&self->merger, word, n, parts);
    count = count <= SHORT ? merge_short(&self->merger, parts, count) : merge_long(&self->merger, parts, count);
    if (count == SIZE_MAX) return -1;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].symbol < self->merger.known) {
            put_id(self, parts[i].symbol);
            continue;
        }
        put_unknown(self, word + parts[i].start, (i + 1 < count ? parts[i + 1].start : n) - parts[i].start);
        unknown = 1;
    }
    return unknown;
}

/* Splits a word by scores behind the ids so far. below: see Slot. Returns as merge_word does. */
static int split_word(Encoder *self, const uint8_t *word, size_t n, float *below) {
    double highest;
    int unknown = 0;
    if (take_room((void **)&self->nodes, &self->node_room, n + 1, sizeof(Node))) return -1;
    Node *nodes = self->nodes;
    size_t characters = viterbi(&self->splitter, word, n, self->sum, nodes, &highest), at = n;
    *below = n <= KEY_BYTES ? safe_below(nodes, n, characters, highest) : 0;
    self->sum = nodes[n].sum;
    for (; at > 0; at = nodes[at].start) nodes[nodes[at].start].true_start = (uint32_t)at; /* turns the links around */
    for (size_t next; at < n; at = next) {
        next = nodes[at].true_start;
        if (nodes[next].key != NONE) {
            put_id(self, self->ids[nodes[next].key]);
        } else {
            put_unknown(self, word + at, next - at);
            unknown = 1;
        }
    }
    return unknown;
}

/* ---- all words -------------------------------------------------------------------------------------------------- */

/* Words are looked up in blocks, so that the slots of a whole block travel from memory at the same time. */
typedef struct {
    const uint8_t *start;
    size_t n;
    Slot *slot;
    uint32_t whole;
    uint64_t key[4];
} Word;

/* Read from 32 - n on: what keeps n of 32 bytes. */
static const uint8_t keep[64] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

/* The word's bytes and its length in the last byte; PADDING bytes behind the text may be read. */
static inline void load_key(Word *word) {
    uint64_t mask[4];
    memcpy(word->key, word->start, sizeof word->key);
    memcpy(mask, keep + 32 - word->n, sizeof mask);
    for (int i = 0; i < 4; i++) word->key[i] &= mask[i];
    word->key[3] |= (uint64_t)word->n << 56;
}

static inline Slot *slot_of(const Encoder *self, const uint64_t key[4]) {
    uint64_t hash = key[0] ^ key[1] * 0xC2B2AE3D27D4EB4FULL ^ key[2] * 0x165667B19E3779F9ULL ^ key[3];
    hash *= 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93ULL;
    return &self->slots[WAYS * (hash >> 47)];
}

static inline int has_key(const Slot *slot, const uint64_t key[4]) {
    return !((slot->key[0] ^ key[0]) | (slot->key[1] ^ key[1]) | (slot->key[2] ^ key[2]) | (slot->key[3] ^ key[3]));
}

/* The slot that holds the word's ids, where they hold here; it is the first of its set then. Else NULL. */
INLINE Slot *find_slot(Encoder *self, const Word *word, int unigram) {
    Slot *slot = word->slot, kept;
    if (!has_key(slot, word->key)) {
        if (!has_key(slot + 1, word->key)) return NULL;
        kept = *slot;
        *slot = slot[1];
        slot[1] = kept;
    }
    if (!unigram || fabsf(self->sum) < slot->below) return slot;
    self->unsure++;
    return NULL;
}

static int encode_word(Encoder *self, const Word *word, int unigram) {
    size_t before = self->count;
    float below = 0;
    int unknown = unigram ? split_word(self, word->start, word->n, &below) : merge_word(self, word->start, word->n);
    if (unknown < 0) return -1;
    Slot *slot = word->slot;
    if (!slot || unknown || self->count - before > CACHED_IDS || (unigram && below <= 0)) return 0;
    self->misses++;
    if (!has_key(slot, word->key)) slot[1] = *slot;
    memcpy(slot->key, word->key, sizeof slot->key);
    slot->below = below;
    slot->count = (uint32_t)(self->count - before);
    memcpy(slot->ids, self->out + before, slot->count * sizeof(uint32_t));
    return 0;
}

/* -1 without memory. */
INLINE int put_word(Encoder *self, const Word *word, int unigram) {
    if (reserve(self, 3 * word->n + CACHED_IDS)) return -1;
    if (word->whole != NONE) {
        put_id(self, self->whole_ids[word->whole]);
        return 0;
    }
    const Slot *slot = word->slot ? find_slot(self, word, unigram) : NULL;
    if (!slot) return encode_word(self, word, unigram);
    memcpy(self->out + self->count, slot->ids, sizeof slot->ids);
    for (uint32_t i = 0; unigram && i < slot->count; i++) self->sum += self->scores[slot->ids[i]];
    self->count += slot->count;
    self->after_unknown = 0;
    return 0;
}

INLINE int encode_all(Encoder *self, const uint8_t *p, const uint8_t *end, int unigram) {
    Word block[BLOCK];
    while (p < end) {
        size_t words = 0;
        for (; words < BLOCK && p < end; words++) {
            Word *word = &block[words];
            const uint8_t *stop = next_word(self, p, end, &word->whole);
            word->start = p;
            word->n = (size_t)(stop - p);
            word->slot = NULL;
            if (word->n <= KEY_BYTES && word->whole == NONE) {
                load_key(word);
                word->slot = slot_of(self, word->key);
                __builtin_prefetch(word->slot);
            }
            p = stop;
        }
        for (size_t i = 0; i < words; i++)
            if (put_word(self, &block[i], unigram)) return -1;
    }
    return 0;
}

static int encode_text(Encoder *self, const uint8_t *p, const uint8_t *end) {
    self->count = 0;
    self->sum = 0;
    self->after_unknown = 0;
    if (normalize(&self->normalizer, p, end, &self->text)) return -1;
    if (self->text.size >= NONE) return 1;
    p = self->text.bytes;
    end = p + self->text.size;
    return self->unigram ? encode_all(self, p, end, 1) : encode_all(self, p, end, 0);
}

/* Gives back what a long text has made grow. */
static void shrink(Encoder *self) {
    if (self->text.capacity > KEPT) {
        PyMem_RawFree(self->text.bytes);
        self->text = (Buffer){NULL, 0, 0};
    }
    if (self->capacity > KEPT) {
        PyMem_RawFree(self->out);
        self->out = NULL;
        self->capacity = 0;
    }
    if (self->node_room > KEPT / sizeof(Node)) {
        PyMem_RawFree(self->nodes);
        self->nodes = NULL;
        self->node_room = 0;
    }
    if (self->part_room > KEPT / sizeof(Part)) {
        PyMem_RawFree(self->parts);
        self->parts = NULL;
        self->part_room = 0;
    }
}

/* ---- the Python type -------------------------------------------------------------------------------------------- */

static PyObject *Encoder_encode(Encoder *self, PyObject *text) {
    PyObject *holder = NULL, *result = NULL;
    const char *data;
    Py_ssize_t size;
    if (!PyUnicode_Check(text)) return PyErr_Format(PyExc_TypeError, "text: a str is needed");
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        data = PyUnicode_DATA(text);
        size = PyUnicode_GET_LENGTH(text);
    } else { /* not AsUTF8AndSize, which would keep the copy alive as long as the text */
        holder = PyUnicode_AsUTF8String(text);
        if (!holder) return NULL;
        data = PyBytes_AS_STRING(holder);
        size = PyBytes_GET_SIZE(holder);
    }
    int failed = encode_text(self, (const uint8_t *)data, (const uint8_t *)data + size);
    if (failed < 0)
        PyErr_NoMemory();
    else if (failed)
        PyErr_Format(PyExc_ValueError, "a text of %zd bytes given, less than 4 GiB when normalised is allowed", size);
    else
        result = PyBytes_FromStringAndSize((const char *)self->out, (Py_ssize_t)(self->count * sizeof(uint32_t)));
    Py_XDECREF(holder);
    shrink(self);
    return result;
}

/* Whether `ends` cuts `bytes` into keys of whole characters, 1 to LONGEST_PIECE bytes each, in ascending order. */
static int sound_keys(const Keys *keys, size_t size) {
    for (size_t i = 0; i < keys->count; i++) {
        size_t start = key_start(keys, i), stop = keys->ends[i];
        if (stop > size || stop <= start || stop - start > LONGEST_PIECE || utf8_inside(keys->bytes[start])) return 0;
        if (!i) continue;
        size_t earlier = i > 1 ? keys->ends[i - 2] : 0, n = start - earlier, m = stop - start;
        int order = memcmp(keys->bytes + earlier, keys->bytes + start, n < m ? n : m);
        if (order > 0 || (!order && n >= m)) return 0;
    }
    return keys->count && keys->ends[keys->count - 1] == size;
}

/* The keys that are marked, and their ids, into memory of their own. -1 without memory. */
static int take_marked(const Keys *keys, const uint32_t *ids, const uint8_t *marks, Keys *taken, uint32_t *taken_ids) {
    uint8_t *bytes = PyMem_RawMalloc(keys->ends[keys->count - 1]);
    uint32_t *ends = PyMem_RawMalloc(keys->count * sizeof(uint32_t)), size = 0;
    *taken = (Keys){bytes, ends, 0};
    if (!bytes || !ends) return -1;
    for (size_t i = 0; i < keys->count; i++) {
        size_t start = key_start(keys, i), n = keys->ends[i] - start;
        if (!marks[i]) continue;
        memcpy(bytes + size, keys->bytes + start, n);
        ends[taken->count] = size += (uint32_t)n;
        taken_ids[taken->count++] = ids[i];
    }
    return 0;
}

static int fill_whole(Encoder *self, const Keys *keys, const uint8_t *marks) {
    Keys taken;
    self->whole_ids = PyMem_RawMalloc(keys->count * sizeof(uint32_t));
    int failed = !self->whole_ids || take_marked(keys, self->ids, marks, &taken, self->whole_ids);
    if (failed) PyErr_NoMemory();
    for (size_t i = 0; !failed && i < taken.count; i++) self->whole_first[taken.bytes[key_start(&taken, i)]] = 1;
    failed = failed || build_trie(&self->whole, &taken);
    if (self->whole_ids) {
        PyMem_RawFree((void *)taken.bytes);
        PyMem_RawFree((void *)taken.ends);
    }
    return -failed;
}

/* Copies `ids` and `values`, and makes the tables of the model. -1 and an exception if something is wrong. */
static int fill(Encoder *self, const Keys *keys, const uint32_t *ids, const char *values, const uint8_t *marks,
                const Rows *rows) {
    Trie trie = {NULL, 0};
    uint32_t highest = self->unknown_id;
    for (size_t i = 0; i < 256; i++) highest = self->byte_ids[i] > highest ? self->byte_ids[i] : highest;
    for (size_t i = 0; i < keys->count; i++) highest = ids[i] > highest ? ids[i] : highest;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t row[3];
        read_row(rows, i, row);
        for (int j = 0; j < 3; j++) highest = row[j] > highest ? row[j] : highest;
    }
    if (highest >= MOST_IDS) return PyErr_Format(PyExc_ValueError, "ids: below %d is allowed", MOST_IDS), -1;
    uint32_t *own = PyMem_RawMalloc(keys->count * sizeof(uint32_t)); /* values at any address */
    self->merger.known = highest + 1;
    self->ids = PyMem_RawMalloc(keys->count * sizeof(uint32_t));
    self->scores = PyMem_RawCalloc(highest + 1, sizeof(float));
    self->slots = take_pages((size_t)SETS * WAYS * sizeof(Slot));
    if (!own || !self->ids || !self->scores || !self->slots) {
        PyMem_RawFree(own);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(self->ids, ids, keys->count * sizeof(uint32_t));
    memcpy(own, values, keys->count * sizeof(uint32_t));
    fill_joined(self, keys);
    int failed = build_trie(&trie, keys);
    if (self->unigram) {
        self->splitter.trie = trie;
        self->splitter.scores = (float *)own;
        for (size_t i = 0; !failed && i < keys->count; i++) {
            float score = self->splitter.scores[i];
            self->scores[ids[i]] = score;
            if (!(fabsf(score) <= RESET)) failed = 1, PyErr_SetString(PyExc_ValueError, "values: a score is too large");
        }
        return -failed;
    }
    failed = failed || fill_merger(&self->merger, &trie, keys, ids, own, rows)
             || fill_whole(self, keys, marks);
    free_trie(&trie);
    PyMem_RawFree(own);
    return -failed;
}

static const char *check_arguments(const Keys *keys, const Py_buffer *pieces, Py_ssize_t ids, Py_ssize_t values,
                                   Py_ssize_t marks, Py_ssize_t byte_ids, float unknown_score) {
    if (pieces->len >= (Py_ssize_t)NONE || !sound_keys(keys, (size_t)pieces->len))
        return "pieces and ends: pieces of 1 to 512 bytes in ascending order are needed";
    if (ids != (Py_ssize_t)keys->count) return "ids: one for each piece is needed";
    if (values != (Py_ssize_t)keys->count) return "values: one for each piece is needed";
    if (marks != (Py_ssize_t)keys->count) return "whole: one for each piece is needed";
    if (byte_ids != 0 && byte_ids != 256) return "byte_ids: 256 uint32 values or none are needed";
    if (!(fabsf(unknown_score) <= RESET)) return "unknown_score: at most 100000 is allowed";
    return NULL;
}

static PyObject *Encoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    enum { PIECES, ENDS, IDS, VALUES, WHOLE, BYTE_IDS, CHARSMAP, MERGES, BUFFERS };
    static const Array arrays[] = {{"pieces", FLAG, 0}, {"ends", UINT32, 0},   {"ids", UINT32, 0},   {"values", RAW32, 0},
                                   {"whole", FLAG, 0},  {"byte_ids", RAW32, 0}, {"charsmap", FLAG, 0},
                                   {"merges", RAW32, 0}};
    static char *names[] = {"unigram", "pieces",        "ends",     "ids",    "values", "whole", "byte_ids",
                            "unknown", "unknown_score", "charsmap", "prefix", "trim",   "merges", NULL};
    PyObject *given[BUFFERS], *unknown;
    Py_buffer b[BUFFERS];
    Encoder *self = NULL;
    int unigram, prefix, trim;
    float unknown_score;
    int64_t unknown_id;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "pOOOOOOOfOppO:Encoder", names, &unigram, &given[PIECES], &given[ENDS],
                                     &given[IDS], &given[VALUES], &given[WHOLE], &given[BYTE_IDS], &unknown,
                                     &unknown_score, &given[CHARSMAP], &prefix, &trim, &given[MERGES])
        || read_integer(unknown, "unknown", 0, MOST_IDS - 1, &unknown_id) < 0 || take_arrays(arrays, given, b, BUFFERS))
        return NULL;
    Keys keys = {b[PIECES].buf, b[ENDS].buf, (size_t)b[ENDS].len / sizeof(uint32_t)};
    const char *fault = check_arguments(&keys, &b[PIECES], b[IDS].len / 4, b[VALUES].len / 4, b[WHOLE].len,
                                        b[BYTE_IDS].len / 4, unknown_score);
    Rows rows = {b[MERGES].buf, (size_t)b[MERGES].len / (3 * sizeof(uint32_t))};
    if (b[MERGES].len % (3 * sizeof(uint32_t)) || rows.count >= NONE / 4)
        fault = "merges: rows of 3 uint32 values (left, right, joint) are needed";
    PyObject *checked = NULL;
    if (fault)
        PyErr_SetString(PyExc_ValueError, fault);
    else if ((checked = PyUnicode_DecodeUTF8(b[PIECES].buf, b[PIECES].len, "strict")))
        self = (Encoder *)type->tp_alloc(type, 0);
    Py_XDECREF(checked);
    if (self) {
        self->unigram = unigram;
        self->bytewise = b[BYTE_IDS].len > 0;
        self->unknown_id = (uint32_t)unknown_id;
        self->splitter.unknown = unknown_score;
        self->normalizer.prefix = prefix;
        self->normalizer.trim = trim;
        if (b[BYTE_IDS].len) memcpy(self->byte_ids, b[BYTE_IDS].buf, sizeof self->byte_ids);
        if (fill_normalizer(&self->normalizer, b[CHARSMAP].buf, (size_t)b[CHARSMAP].len)
            || fill(self, &keys, b[IDS].buf, b[VALUES].buf, b[WHOLE].buf, &rows))
            Py_CLEAR(self);
    }
    release_arrays(b, BUFFERS);
    return (PyObject *)self;
}

static PyObject *Encoder_work(Encoder *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("nn", (Py_ssize_t)self->misses, (Py_ssize_t)self->unsure);
}

static void Encoder_dealloc(Encoder *self) {
    PyTypeObject *type = Py_TYPE(self);
    free_normalizer(&self->normalizer);
    free_trie(&self->splitter.trie);
    PyMem_RawFree(self->splitter.scores);
    free_merger(&self->merger);
    free_trie(&self->whole);
    PyMem_RawFree(self->ids);
    PyMem_RawFree(self->whole_ids);
    PyMem_RawFree(self->scores);
    free_pages(self->slots, (size_t)SETS * WAYS * sizeof(Slot));
    PyMem_RawFree(self->text.bytes);
    PyMem_RawFree(self->nodes);
    PyMem_RawFree(self->parts);
    PyMem_RawFree(self->out);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Encoder_methods[] = {
    {"encode", (PyCFunction)Encoder_encode, METH_O,
     "encode(text) -> bytes of native uint32 ids, one per token.\n\n"
     "UnicodeEncodeError for lone surrogates, MemoryError, ValueError from 4 GiB."},
    {"work", (PyCFunction)Encoder_work, METH_NOARGS,
     "work() -> (words put into the cache, words there that were split once more) so far; for tests."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Encoder_slots[] = {
    {Py_tp_doc,
     "Encoder(unigram, pieces, ends, ids, values, whole, byte_ids, unknown, unknown_score, charsmap, prefix, trim,\n"
     "merges): SentencePiece BPE or unigram, or BPE over characters.\n\n"
     "pieces, ends: UTF-8 of the pieces in ascending order, a space for U+2581; piece i ends at ends[i]. ids: uint32.\n"
     "values: unigram: float32 scores; BPE: uint32 ranks, the lowest merges first. whole: pieces that BPE takes as\n"
     "they stand. byte_ids: 256 ids for the bytes of unknown characters, or none. unknown, unknown_score: of others.\n"
     "charsmap: NormalizerSpec.precompiled_charsmap or nothing. prefix, trim: whitespace, see piece_charsmap.h.\n"
     "merges: none, or what BPE merges instead of all that makes a piece: rows of left, right and joint id by rank."},
    {Py_tp_new, Encoder_new},
    {Py_tp_dealloc, Encoder_dealloc},
    {Py_tp_methods, Encoder_methods},
    {0, NULL}};

static PyType_Spec Encoder_spec = {"transforms.native.pieces.Encoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT,
                                   Encoder_slots};

static int module_exec(PyObject *module) {
    if (draw_key(&pair_key)) return -1;
    PyObject *type = PyType_FromSpec(&Encoder_spec);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Encoder", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pieces", "SentencePiece.", 0, NULL, module_slots, NULL, NULL,
                                    NULL};

PyMODINIT_FUNC PyInit_pieces(void) { return PyModuleDef_Init(&module); }
