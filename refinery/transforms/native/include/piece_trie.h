/* A set of byte strings as a double-array trie (Aoe 1989): one step is two additions and one comparison.
 *
 * A state's child by byte c is at (base ^ c), if the unit there names the state as its parent. Bases stay within blocks
 * of 256 units, so a step never leaves the array. Cost of building: linear in the keys' bytes; units of older blocks are
 * not looked at again. Memory: 12 bytes per unit, about 1.1 units per state. */

#ifndef REFINERY_PIECE_TRIE_H
#define REFINERY_PIECE_TRIE_H

#include "kernel.h"

#define NONE UINT32_MAX
enum { TRIE_BLOCK = 256, OPEN_BLOCKS = 16, TRIES = 512 };

typedef struct {
    uint32_t base, parent; /* parent is NONE in a free unit */
    uint32_t value; /* number of the key that ends here, or NONE */
} Unit;

typedef struct {
    Unit *units; /* the root is number 0 */
    size_t size;
} Trie;

/* Keys in ascending order, one behind the other; key i ends at ends[i]. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *ends;
    size_t count;
} Keys;

static inline size_t key_start(const Keys *keys, size_t i) { return i ? keys->ends[i - 1] : 0; }

/* The state behind `state` and a byte, or NONE. */
static inline uint32_t trie_step(const Trie *trie, uint32_t state, uint8_t byte) {
    uint32_t next = trie->units[state].base ^ byte;
    return trie->units[next].parent == state ? next : NONE;
}

/* Number of the key that these bytes are, or NONE. */
static uint32_t trie_find(const Trie *trie, const uint8_t *bytes, size_t n) {
    uint32_t state = 0;
    for (size_t i = 0; i < n; i++)
        if ((state = trie_step(trie, state, bytes[i])) == NONE) return NONE;
    return trie->units[state].value;
}

/* Number and length of the longest key that the bytes begin with, or NONE. */
static uint32_t trie_longest(const Trie *trie, const uint8_t *p, const uint8_t *end, size_t *length) {
    uint32_t state = 0, found = NONE;
    for (const uint8_t *at = p; at < end && (state = trie_step(trie, state, *at)) != NONE; at++)
        if (trie->units[state].value != NONE) {
            found = trie->units[state].value;
            *length = (size_t)(at + 1 - p);
        }
    return found;
}

static void free_trie(Trie *trie) {
    PyMem_RawFree(trie->units);
    trie->units = NULL;
}

/* A list of the free units of the open blocks, in ascending order. */
typedef struct {
    Trie *trie;
    uint32_t (*links)[2]; /* the free units before and behind each, NONE at the ends */
    size_t capacity;
    uint32_t first, last;
} Builder;

typedef struct {
    uint32_t state, low, high, depth; /* keys low … high - 1 share their first `depth` bytes, which lead to the state */
} Range;

static void take_unit(Builder *self, uint32_t unit) {
    uint32_t before = self->links[unit][0], behind = self->links[unit][1];
    *(before == NONE ? &self->first : &self->links[before][1]) = behind;
    *(behind == NONE ? &self->last : &self->links[behind][0]) = before;
}

/* A further block of free units; those of the oldest open one are given up. -1 without memory. */
static int add_block(Builder *self) {
    Trie *trie = self->trie;
    size_t start = trie->size, stop = start + TRIE_BLOCK;
    if (stop > self->capacity) {
        size_t capacity = self->capacity + self->capacity / 2 + TRIE_BLOCK;
        Unit *units = PyMem_RawRealloc(trie->units, capacity * sizeof(Unit));
        if (units) trie->units = units;
        void *links = PyMem_RawRealloc(self->links, capacity * sizeof *self->links);
        if (links) self->links = links;
        if (!units || !links) return -1;
        self->capacity = capacity;
    }
    trie->size = stop;
    while (self->first != NONE && self->first + (size_t)OPEN_BLOCKS * TRIE_BLOCK < stop) take_unit(self, self->first);
    for (uint32_t i = (uint32_t)start; i < stop; i++) {
        trie->units[i] = (Unit){0, NONE, NONE};
        self->links[i][0] = self->last;
        self->links[i][1] = NONE;
        *(self->last == NONE ? &self->first : &self->links[self->last][1]) = i;
        self->last = i;
    }
    return 0;
}

/* A base whose units for all labels are free, from the open blocks or a new one. NONE without memory. */
static uint32_t find_base(Builder *self, const uint8_t *labels, size_t count) {
    uint32_t unit = self->first;
    for (int tries = 0; unit != NONE && tries < TRIES; tries++, unit = self->links[unit][1]) {
        uint32_t base = unit ^ labels[0];
        size_t i = 1;
        while (i < count && self->trie->units[base ^ labels[i]].parent == NONE) i++;
        if (i == count) return base;
    }
    uint32_t start = (uint32_t)self->trie->size;
    return add_block(self) ? NONE : start;
}

/* The trie of the keys. -1 and an exception without memory. */
static int build_trie(Trie *trie, const Keys *keys) {
    Builder self = {trie, NULL, 0, NONE, NONE};
    Range *ranges = PyMem_RawMalloc((keys->count + 1) * sizeof(Range));
    size_t pending = 1;
    int failed = !ranges || add_block(&self);
    if (!failed) {
        trie->units[0].parent = NONE - 1; /* taken, and nobody's child */
        take_unit(&self, 0);
        ranges[0] = (Range){0, 0, (uint32_t)keys->count, 0};
    }
    while (!failed && pending) {
        Range range = ranges[--pending];
        uint8_t labels[256];
        uint32_t starts[257];
        size_t count = 0;
        uint32_t i = range.low;
        if (i < range.high && keys->ends[i] - key_start(keys, i) == range.depth) trie->units[range.state].value = i++;
        for (; i < range.high; i++) {
            uint8_t label = keys->bytes[key_start(keys, i) + range.depth];
            if (count && labels[count - 1] == label) continue;
            labels[count] = label;
            starts[count++] = i;
        }
        if (!count) continue;
        starts[count] = range.high;
        uint32_t base = find_base(&self, labels, count);
        if (base == NONE) {
            failed = 1;
            break;
        }
        trie->units[range.state].base = base;
        for (size_t child = 0; child < count; child++) {
            uint32_t state = base ^ labels[child];
            trie->units[state].parent = range.state;
            take_unit(&self, state);
            ranges[pending++] = (Range){state, starts[child], starts[child + 1], range.depth + 1};
        }
    }
    PyMem_RawFree(self.links);
    PyMem_RawFree(ranges);
    if (failed) PyErr_NoMemory();
    return -failed;
}

#endif
