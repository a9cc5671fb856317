/* The encoder of pieces.c: where a text is cut, the words, and the cache of their ids. Included there alone. */

#ifndef REFINERY_PIECE_ENCODER_H
#define REFINERY_PIECE_ENCODER_H

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

#endif
