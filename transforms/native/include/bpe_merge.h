/* The merges of one piece: lowest rank first, leftmost first. Included by bpe.c alone.
 *
 * Cost: n^2 for a piece of up to SMALL bytes (a few hundred cheap steps), n log n for a longer one, with 28 bytes of
 * scratch memory per byte. Merges are found in a hash table, at most a third full, whose slots depend on a random key:
 * the pairs that a text or a tokenizer asks for cannot be chosen to meet in one. */

#include "keyed_hash.h"

#define NONE UINT32_MAX
enum { SMALL = 64 };

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* NONE in an empty slot */
    uint32_t id;
} Merge;

typedef struct {
    uint32_t byte_ids[256];
    Merge *slots;
    size_t mask, steps; /* steps: slots passed over in all look-ups, for tests */
} Merges;

static HashKey merge_key; /* drawn when the module is loaded */

/* The merge of a pair, or the empty slot where it would be. */
static inline Merge *find_merge(Merges *self, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    for (size_t i = slot_hash(&merge_key, pair) & self->mask;; i = (i + 1) & self->mask, self->steps++) {
        Merge *merge = &self->slots[i];
        if (merge->rank == NONE || merge->pair == pair) return merge;
    }
}

/* A piece of at most SMALL bytes: look for the lowest rank again after each merge. Writes ids, returns their count. */
static size_t merge_small(Merges *self, const uint8_t *piece, size_t n, uint32_t *ids) {
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

/* Fills the table with `count` rows of left id, right id, merged id, in rank order. -1 without memory. */
static int fill_merges(Merges *self, const char *byte_ids, const char *rows, size_t count) {
    size_t slots = 1024;
    while (slots < 3 * count) slots *= 2;
    self->mask = slots - 1;
    self->slots = take_pages(slots * sizeof(Merge));
    if (!self->slots) return -1;
    memcpy(self->byte_ids, byte_ids, sizeof self->byte_ids);
    for (size_t i = 0; i < slots; i++) self->slots[i].rank = NONE;
    for (size_t rank = 0; rank < count; rank++) {
        uint32_t row[3];
        memcpy(row, rows + rank * sizeof row, sizeof row); /* at any address */
        Merge *merge = find_merge(self, row[0], row[1]);
        merge->pair = (uint64_t)row[0] << 32 | row[1];
        merge->rank = (uint32_t)rank; /* a pair listed twice keeps its last rank */
        merge->id = row[2];
    }
    return 0;
}
