/* The merges of one piece: lowest rank first, leftmost first. Included by bpe.c alone.
 *
 * Cost: n^2 for a piece of up to SMALL bytes (a few hundred cheap steps), n log n for a longer one, with 28 bytes of
 * scratch memory per byte. Merges are found in a hash table, at most a third full, whose slots depend on a random key:
 * the pairs that a text or a tokenizer asks for cannot be chosen to meet in one. */

#include "heap.h"
#include "keyed_hash.h"

#define NONE UINT32_MAX
enum { SMALL = 64, BYTE_PAIRS = 1 << 16, FILTER = 4 }; /* FILTER: bits per slot of merges */

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* NONE in an empty slot */
    uint32_t id;
} Merge;

typedef struct {
    uint32_t rank, id;
} Joint;

typedef struct {
    uint32_t byte_ids[256];
    Joint *bytes; /* BYTE_PAIRS: the merge of two bytes */
    uint64_t *present; /* a bit for each hash of a pair: most other pairs end there, in near memory */
    Merge *slots;
    size_t mask, steps; /* steps: slots passed over in all look-ups, for tests */
} Merges;

static HashKey merge_key; /* drawn when the module is loaded */

INLINE uint64_t hash_pair(uint32_t left, uint32_t right) {
    return slot_hash(&merge_key, (uint64_t)left << 32 | right);
}

/* The slot of a pair, or the empty one where it would be. */
static inline Merge *find_slot(Merges *self, uint64_t hash, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    for (size_t i = hash & self->mask;; i = (i + 1) & self->mask, self->steps++) {
        Merge *merge = &self->slots[i];
        if (merge->rank == NONE || merge->pair == pair) return merge;
    }
}

/* The word and the bit of a pair in `present`. */
INLINE uint64_t *filter_word(const Merges *self, uint64_t hash, uint64_t *bit) {
    *bit = 1ULL << (hash >> 58);
    return &self->present[(hash >> 26) & ((self->mask + 1) * FILTER / 64 - 1)];
}

/* The merge of a pair; its rank is NONE where there is none. */
static inline Joint find_merge(Merges *self, uint32_t left, uint32_t right) {
    uint64_t hash = hash_pair(left, right), bit;
    if (!(*filter_word(self, hash, &bit) & bit)) return (Joint){NONE, 0};
    const Merge *merge = find_slot(self, hash, left, right);
    return (Joint){merge->rank, merge->id};
}

/* A piece of at most SMALL bytes: look for the lowest rank again after each merge. Writes ids, returns their count. */
static size_t merge_small(Merges *self, const uint8_t *piece, size_t n, uint32_t *ids) {
    Joint joint[SMALL];
    for (size_t i = 0; i < n; i++) ids[i] = self->byte_ids[piece[i]];
    for (size_t i = 0; i + 1 < n; i++) joint[i] = self->bytes[piece[i] << 8 | piece[i + 1]];
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (joint[i].rank < joint[best].rank) best = i;
        if (joint[best].rank == NONE) break;
        ids[best] = joint[best].id;
        n--;
        for (size_t i = best + 1; i < n; i++) ids[i] = ids[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) joint[i] = joint[i + 1];
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++)
            joint[i] = find_merge(self, ids[i], ids[i + 1]);
    }
    return n;
}

typedef struct {
    uint32_t id, previous, next; /* id is NONE once merged into its left neighbour */
} Symbol;

/* A long piece: a heap of rank << 32 | position. An entry is stale when the pair at its position no longer has its
 * rank; a rank belongs to one pair, so this test is exact. Each merge takes one entry and adds at most two, so the
 * heap never holds more than 2 n. Returns the count of ids, or SIZE_MAX without memory. */
static size_t merge_large(Merges *self, const uint8_t *piece, size_t n, uint32_t *ids) {
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
        uint32_t rank = self->bytes[piece[i] << 8 | piece[i + 1]].rank;
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
        Joint joint = find_merge(self, left->id, right->id);
        if (joint.rank != rank) continue;
        left->id = joint.id;
        left->next = right->next;
        right->id = NONE;
        if (left->next != NONE) {
            symbols[left->next].previous = at;
            uint32_t fresh = find_merge(self, left->id, symbols[left->next].id).rank;
            if (fresh != NONE) sift_up(heap, size++, (uint64_t)fresh << 32 | at);
        }
        if (left->previous != NONE) {
            uint32_t fresh = find_merge(self, symbols[left->previous].id, left->id).rank;
            if (fresh != NONE) sift_up(heap, size++, (uint64_t)fresh << 32 | left->previous);
        }
    }
    for (uint32_t i = 0; i != NONE; i = symbols[i].next) ids[count++] = symbols[i].id;
    PyMem_RawFree(symbols);
    PyMem_RawFree(heap);
    return count;
}

/* Fills the tables with `count` rows of left id, right id, merged id, in rank order. -1 without memory. */
static int fill_merges(Merges *self, const char *byte_ids, const char *rows, size_t count) {
    size_t slots = 1024;
    while (slots < count + count / 2) slots *= 2;
    self->mask = slots - 1;
    self->slots = take_pages(slots * sizeof(Merge));
    self->present = take_pages(slots * FILTER / 8);
    self->bytes = take_pages(BYTE_PAIRS * sizeof(Joint));
    if (!self->slots || !self->present || !self->bytes) return -1;
    memcpy(self->byte_ids, byte_ids, sizeof self->byte_ids);
    for (size_t i = 0; i < slots; i++) self->slots[i].rank = NONE;
    for (size_t rank = 0; rank < count; rank++) {
        uint32_t row[3];
        memcpy(row, rows + rank * sizeof row, sizeof row); /* at any address */
        uint64_t hash = hash_pair(row[0], row[1]), bit;
        Merge *merge = find_slot(self, hash, row[0], row[1]);
        merge->pair = (uint64_t)row[0] << 32 | row[1];
        merge->rank = (uint32_t)rank; /* a pair listed twice keeps its last rank */
        merge->id = row[2];
        *filter_word(self, hash, &bit) |= bit;
    }
    for (size_t i = 0; i < BYTE_PAIRS; i++)
        self->bytes[i] = find_merge(self, self->byte_ids[i >> 8], self->byte_ids[i & 255]);
    return 0;
}

static void free_merges(Merges *self) {
    free_pages(self->slots, (self->mask + 1) * sizeof(Merge));
    free_pages(self->present, (self->mask + 1) * FILTER / 8);
    free_pages(self->bytes, BYTE_PAIRS * sizeof(Joint));
}
