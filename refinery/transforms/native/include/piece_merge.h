/* SentencePiece BPE: the characters of a word are merged, the pair that makes the best piece first, the leftmost first.
 *
 * Two neighbours merge if together they are a piece, however they came about; so every way to halve a piece into two
 * pieces or characters is a row of a table of pairs, and merging is byte-pair encoding with several rows of one rank.
 * Pieces of one score share a rank. Characters that are in no vocabulary entry of their own have numbers behind the
 * vocabulary's. Hugging Face's BPE over characters, as in the tokenizer.json of Llama 2 and Gemma, lists its pairs.
 *
 * Cost: n^2 for a word of up to SHORT characters, n log n for a longer one, with 36 bytes of memory per character. The
 * table's slots depend on a random key, as in bpe_merge.h. */

#ifndef REFINERY_PIECE_MERGE_H
#define REFINERY_PIECE_MERGE_H

#include "heap.h"
#include "keyed_hash.h"
#include "large_pages.h"

#include "piece_trie.h"

enum { SHORT = 64, PAGE = 256, PAGES = 0x110000 / PAGE };

typedef struct {
    uint64_t pair; /* left symbol << 32 | right symbol */
    uint32_t rank; /* NONE in an empty slot */
    uint32_t joint;
} Pair;

typedef struct {
    uint32_t *symbols; /* of each code point, in pages; page 0 is of NONE alone */
    uint16_t pages[PAGES];
    Pair *pairs;
    size_t mask;
    uint32_t known; /* symbols from here on are no ids */
} Merger;

static HashKey pair_key; /* drawn when the module is loaded */

/* The character at p, and the place behind it; the bytes are UTF-8. */
INLINE const uint8_t *next_character(const uint8_t *p, uint32_t *character) {
    if (*p < 0x80) return *character = *p, p + 1;
    if (*p < 0xE0) return *character = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu), p + 2;
    if (*p < 0xF0) return *character = (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu), p + 3;
    *character = (p[0] & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
    return p + 4;
}

static inline uint32_t symbol_of(const Merger *self, uint32_t character) {
    return self->symbols[(size_t)PAGE * self->pages[character / PAGE] + character % PAGE];
}

/* The row of a pair, or the empty slot where it would be. */
static inline Pair *find_pair(const Merger *self, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    for (size_t i = slot_hash(&pair_key, pair) & self->mask;; i = (i + 1) & self->mask) {
        Pair *found = &self->pairs[i];
        if (found->rank == NONE || found->pair == pair) return found;
    }
}

/* Gives every character of the keys a symbol. -1 without memory. */
static int fill_symbols(Merger *self, const Trie *trie, const Keys *keys, const uint32_t *ids) {
    const uint8_t *p = keys->bytes, *end = p + (keys->count ? keys->ends[keys->count - 1] : 0), *next;
    uint32_t pages = 1, fresh = self->known, character;
    for (; p < end; p = next_character(p, &character)) {
        (void)next_character(p, &character);
        if (!self->pages[character / PAGE]) self->pages[character / PAGE] = (uint16_t)pages++;
    }
    self->symbols = PyMem_RawMalloc((size_t)pages * PAGE * sizeof(uint32_t));
    if (!self->symbols) return -1;
    memset(self->symbols, 0xFF, (size_t)pages * PAGE * sizeof(uint32_t));
    for (p = keys->bytes; p < end; p = next) {
        next = next_character(p, &character);
        uint32_t *symbol = &self->symbols[(size_t)PAGE * self->pages[character / PAGE] + character % PAGE];
        if (*symbol != NONE) continue;
        uint32_t key = trie_find(trie, p, (size_t)(next - p));
        *symbol = key == NONE ? fresh++ : ids[key];
    }
    return 0;
}

/* The symbol of bytes that are a character or a piece, NONE for others. */
static uint32_t symbol_at(const Merger *self, const Trie *trie, const uint32_t *ids, const uint8_t *p, size_t n) {
    uint32_t character;
    if (next_character(p, &character) == p + n) return symbol_of(self, character);
    uint32_t key = trie_find(trie, p, n);
    return key == NONE ? NONE : ids[key];
}

static int take_pairs(Merger *self, size_t count) {
    size_t slots = 1024;
    while (slots < 3 * count) slots *= 2;
    self->mask = slots - 1;
    self->pairs = take_pages(slots * sizeof(Pair));
    if (!self->pairs) return -1;
    for (size_t i = 0; i < slots; i++) self->pairs[i].rank = NONE;
    return 0;
}

/* Each way to halve each key, into the table, or with `count` alone only counted. */
static size_t halve(Merger *self, const Trie *trie, const Keys *keys, const uint32_t *ids, const uint32_t *ranks,
                    int count) {
    size_t found = 0;
    for (size_t key = 0; key < keys->count; key++) {
        const uint8_t *start = keys->bytes + key_start(keys, key), *end = keys->bytes + keys->ends[key], *p;
        uint32_t character;
        for (p = next_character(start, &character); p < end; p = next_character(p, &character)) {
            uint32_t left = symbol_at(self, trie, ids, start, (size_t)(p - start));
            uint32_t right = left == NONE ? NONE : symbol_at(self, trie, ids, p, (size_t)(end - p));
            if (right == NONE) continue;
            found++;
            if (count) continue;
            Pair *pair = find_pair(self, left, right);
            *pair = (Pair){(uint64_t)left << 32 | right, ranks[key], ids[key]};
        }
    }
    return found;
}

/* Rows of left id, right id, joint id, in order of rank; a pair listed twice keeps its last rank. */
typedef struct {
    const char *bytes; /* at any address */
    size_t count;
} Rows;

static void read_row(const Rows *rows, size_t i, uint32_t row[3]) {
    memcpy(row, rows->bytes + i * 3 * sizeof(uint32_t), 3 * sizeof(uint32_t));
}

/* The table, from the rows if there are any, else from the ways to halve the keys. -1 and an exception without memory. */
static int fill_merger(Merger *self, const Trie *trie, const Keys *keys, const uint32_t *ids, const uint32_t *ranks,
                       const Rows *rows) {
    int failed = fill_symbols(self, trie, keys, ids);
    if (failed || take_pairs(self, rows->count ? rows->count : halve(self, trie, keys, ids, ranks, 1))) {
        PyErr_NoMemory();
        return -1;
    }
    if (!rows->count) halve(self, trie, keys, ids, ranks, 0);
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t row[3];
        read_row(rows, i, row);
        *find_pair(self, row[0], row[1]) = (Pair){(uint64_t)row[0] << 32 | row[1], (uint32_t)i, row[2]};
    }
    return 0;
}

static void free_merger(Merger *self) {
    PyMem_RawFree(self->symbols);
    free_pages(self->pairs, (self->mask + 1) * sizeof(Pair));
}

/* A part of a word: its first byte, and the symbol. */
typedef struct {
    uint32_t symbol, start;
} Part;

/* Splits a word into characters; returns their count. */
static size_t split(const Merger *self, const uint8_t *word, size_t n, Part *parts) {
    size_t count = 0;
    for (const uint8_t *p = word; p < word + n; count++) {
        uint32_t character, start = (uint32_t)(p - word);
        p = next_character(p, &character);
        parts[count] = (Part){symbol_of(self, character), start};
    }
    return count;
}

static inline void look_up(const Merger *self, const Part *parts, size_t i, Pair *pairs) {
    pairs[i] = *find_pair(self, parts[i].symbol, parts[i + 1].symbol);
}

/* At most SHORT parts: look for the best rank again after each merge. Returns the count of those that are left. */
static size_t merge_short(const Merger *self, Part *parts, size_t n) {
    Pair pairs[SHORT];
    for (size_t i = 0; i + 1 < n; i++) look_up(self, parts, i, pairs);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (pairs[i].rank < pairs[best].rank) best = i;
        if (pairs[best].rank == NONE) break;
        parts[best].symbol = pairs[best].joint;
        n--;
        for (size_t i = best + 1; i < n; i++) parts[i] = parts[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) pairs[i] = pairs[i + 1];
        if (best + 1 < n) look_up(self, parts, best, pairs);
        if (best) look_up(self, parts, best - 1, pairs);
    }
    return n;
}

typedef struct {
    uint32_t previous, next; /* parts; NONE at an end, both where a part was merged into the one before it */
    uint32_t joint; /* what the part and the next one would make, NONE for nothing */
} Link;

/* Puts the pair that begins at `left` on the heap, if it is one; returns the heap's size. */
static size_t push_pair(const Merger *self, const Part *parts, Link *links, uint32_t left, uint64_t *heap, size_t size) {
    if (links[left].next == NONE) return size;
    const Pair *pair = find_pair(self, parts[left].symbol, parts[links[left].next].symbol);
    links[left].joint = pair->rank == NONE ? NONE : pair->joint;
    if (pair->rank != NONE) sift_up(heap, size++, (uint64_t)pair->rank << 32 | left);
    return size;
}

/* Any number of parts: a heap of rank << 32 | part. An entry is stale if the pair there has another rank by now; with
 * the same rank it is as good as the entry of that pair. Each merge takes one entry and adds at most two, so the heap
 * never holds more than 2 n. Returns the count of the parts that are left, SIZE_MAX without memory. */
static size_t merge_long(const Merger *self, Part *parts, size_t n) {
    Link *links = PyMem_RawMalloc(n * sizeof(Link));
    uint64_t *heap = PyMem_RawMalloc(2 * n * sizeof(uint64_t));
    size_t size = 0, count = 0;
    if (!links || !heap) n = 0;
    for (uint32_t i = 0; i < n; i++) links[i] = (Link){i - 1, i + 1 < n ? i + 1 : NONE, NONE};
    for (uint32_t i = 0; i + 1 < n; i++) size = push_pair(self, parts, links, i, heap, size);
    while (size) {
        uint32_t left = (uint32_t)heap[0], rank = (uint32_t)(heap[0] >> 32), right = links[left].next;
        heap[0] = heap[--size];
        if (size) sift_down(heap, size, 0);
        if (right == NONE || links[left].joint == NONE) continue;
        if (find_pair(self, parts[left].symbol, parts[right].symbol)->rank != rank) continue;
        parts[left].symbol = links[left].joint;
        links[left].joint = NONE;
        links[left].next = links[right].next;
        if (links[left].next != NONE) links[links[left].next].previous = left;
        links[right] = (Link){NONE, NONE, NONE};
        size = push_pair(self, parts, links, left, heap, size);
        if (links[left].previous != NONE) size = push_pair(self, parts, links, links[left].previous, heap, size);
    }
    for (uint32_t i = 0; n && i != NONE; i = links[i].next) parts[count++] = parts[i];
    count = links && heap ? count : SIZE_MAX;
    PyMem_RawFree(links);
    PyMem_RawFree(heap);
    return count;
}

#endif
