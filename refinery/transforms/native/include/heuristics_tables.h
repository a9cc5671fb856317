/* Growing arrays and a hash table that hands out dense ids. Keys are 64-bit hashes, taken as identity.

   Open addressing with linear probing at most half full. A key's slot is its keyed hash (keyed_hash.h), so that no text
   can choose words that meet in a slot; ids are given in order of insertion and never depend on slots. */

#include "keyed_hash.h"

enum { MIN_SLOTS = 16, MAX_FIRST_SLOTS = 1 << 14 };

#define HASH_SEED UINT64_C(0x243F6A8885A308D3)
#define WORD_PRIME UINT64_C(0x9E3779B97F4A7C15)
#define LINE_PRIME UINT64_C(0xD6E8FEB86659FD93)

typedef struct { uint64_t key; uint32_t id, unused; } Slot; /* id 0: free */
typedef struct { Slot *slots; size_t mask, used, allocated, steps; } Table; /* steps: slots passed over since reset */
typedef struct { void *items; size_t capacity; } Vector;

static HashKey slot_key; /* drawn when the module is loaded */

static int reserve(Vector *vector, size_t needed, size_t size)
{
    if (needed <= vector->capacity)
        return 0;
    size_t capacity = needed < 512 ? 512 : needed + needed / 2;
    void *items = PyMem_RawRealloc(vector->items, capacity * size);
    if (!items)
        return -1;
    vector->items = items;
    vector->capacity = capacity;
    return 0;
}

/* A fixed mixer: part of the identity of a paragraph, of no slot. */
INLINE uint64_t mix(uint64_t key)
{
    key = (key ^ (key >> 32)) * LINE_PRIME;
    key = (key ^ (key >> 29)) * WORD_PRIME;
    return key ^ (key >> 32);
}

CHECK int table_reset(Table *table, size_t expected)
{
    size_t size = MIN_SLOTS;
    while (size < 2 * expected && size < MAX_FIRST_SLOTS)
        size *= 2;
    if (size > table->allocated) {
        Slot *slots = PyMem_RawRealloc(table->slots, size * sizeof(Slot));
        if (!slots)
            return -1;
        table->slots = slots;
        table->allocated = size;
    }
    memset(table->slots, 0, size * sizeof(Slot));
    table->mask = size - 1;
    table->used = table->steps = 0;
    return 0;
}

static int table_grow(Table *table)
{
    size_t size = 2 * (table->mask + 1);
    Slot *slots = PyMem_RawCalloc(size, sizeof(Slot));
    if (!slots)
        return -1;
    for (size_t i = 0; i <= table->mask; i++) {
        if (!table->slots[i].id)
            continue;
        size_t at = slot_hash(&slot_key, table->slots[i].key) & (size - 1);
        for (; slots[at].id; table->steps++)
            at = (at + 1) & (size - 1);
        slots[at] = table->slots[i];
    }
    PyMem_RawFree(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    table->allocated = size;
    return 0;
}

/* The id of `key`, 0, 1, … in order of first insertion; -1: no memory. Compare `used` to see whether it was new. */
INLINE int64_t table_insert(Table *table, uint64_t key)
{
    size_t at = slot_hash(&slot_key, key) & table->mask;
    for (; table->slots[at].id; table->steps++) {
        if (table->slots[at].key == key)
            return (int64_t)table->slots[at].id - 1;
        at = (at + 1) & table->mask;
    }
    table->slots[at].key = key;
    table->slots[at].id = (uint32_t)++table->used;
    int64_t id = (int64_t)table->used - 1;
    return 2 * table->used > table->mask && table_grow(table) < 0 ? -1 : id;
}

INLINE int table_has(Table *table, uint64_t key)
{
    size_t at = slot_hash(&slot_key, key) & table->mask;
    for (; table->slots[at].id; table->steps++) {
        if (table->slots[at].key == key)
            return 1;
        at = (at + 1) & table->mask;
    }
    return 0;
}
