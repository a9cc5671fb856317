/* Best fit: pieces in the order of their keys, each into the row with the least room that holds it. For best_fit and
 * layouts.
 *
 * Pieces wait by key, rows by the room that they have left: both are queues in the order of arrival, one for each size,
 * and a tree of bits over the sizes finds the next queue that is not empty in a step for each factor of 64.
 *
 * Cost: some 20 ns for each piece, whatever the capacity; 34 bytes for each size up to the capacity, 16 for each piece.
 * Safety: the caller has checked lengths (1 to the capacity) and keys; every index is one that this file has put into a
 * queue itself. */

#ifndef REFINERY_PACK_H
#define REFINERY_PACK_H

#include <stdlib.h>

#include "kernel.h"

enum { LEVELS = 4, MOST = 1 << 24 }; /* 64^4 sizes */

/* Queues of items by size. next: of each item, which one follows it in its queue. */
typedef struct {
    uint64_t *bits[LEVELS]; /* which sizes have a queue; above, which words have any */
    int64_t words[LEVELS];
    int64_t *head, *tail, *next;
} Queues;

static int make_queues(Queues *q, int64_t sizes, int64_t items)
{
    int64_t words = sizes;
    memset(q, 0, sizeof *q);
    for (int level = 0; level < LEVELS; level++) {
        words = (words + 63) / 64;
        q->words[level] = words;
        if (!(q->bits[level] = calloc((size_t)words, 8)))
            return 0;
    }
    q->head = malloc((size_t)sizes * 8);
    q->tail = malloc((size_t)sizes * 8);
    q->next = malloc((size_t)items * 8 + 8);
    return q->head && q->tail && q->next;
}

static void free_queues(Queues *q)
{
    for (int level = 0; level < LEVELS; level++)
        free(q->bits[level]);
    free(q->head);
    free(q->tail);
    free(q->next);
}

/* The smallest size from `size` on that has a queue, -1 if there is none. */
static int64_t find_queue(const Queues *q, int64_t size)
{
    for (int level = 0; level < LEVELS && size >> 6 < q->words[level]; level++) {
        const uint64_t word = q->bits[level][size >> 6] >> (size & 63);
        if (word) {
            size += __builtin_ctzll(word);
            while (level--)
                size = size << 6 | __builtin_ctzll(q->bits[level][size]);
            return size;
        }
        size = (size >> 6) + 1;
    }
    return -1;
}

static void put(Queues *q, int64_t size, int64_t item)
{
    int64_t at = size;
    if (q->bits[0][size >> 6] >> (size & 63) & 1) {
        q->next[q->tail[size]] = item;
    } else {
        q->head[size] = item;
        for (int level = 0; level < LEVELS; level++, at >>= 6)
            q->bits[level][at >> 6] |= (uint64_t)1 << (at & 63);
    }
    q->tail[size] = item;
}

/* The first item of a queue that is not empty, which it leaves. */
static int64_t take(Queues *q, int64_t size)
{
    const int64_t item = q->head[size];
    if (item != q->tail[size]) {
        q->head[size] = q->next[item];
        return item;
    }
    for (int level = 0; level < LEVELS; level++, size >>= 6)
        if (q->bits[level][size >> 6] &= ~((uint64_t)1 << (size & 63)))
            break;
    return item;
}

/* Rows of the pieces [first, stop), the rows numbered from `opened` on; returns how many there are then. The piece of
 * the greatest key comes first; keys are 0 to the capacity. */
static int64_t pack_group(Queues *pieces, Queues *rows, const int64_t *lengths, const int64_t *keys, int64_t first,
                          int64_t stop, int64_t capacity, int64_t opened, int64_t *row_of, int64_t *openers)
{
    int64_t size = 0, room;
    for (int64_t piece = first; piece < stop; piece++)
        put(pieces, capacity - keys[piece], piece);
    while ((size = find_queue(pieces, size)) >= 0) {
        const int64_t piece = take(pieces, size), length = lengths[piece];
        int64_t row;
        if ((room = find_queue(rows, length)) >= 0) {
            row = take(rows, room);
        } else {
            row = opened++;
            openers[row] = piece;
            room = capacity;
        }
        row_of[piece] = row;
        if (room > length)
            put(rows, room - length, row);
    }
    for (room = 0; (room = find_queue(rows, room)) >= 0;)
        take(rows, room);
    return opened;
}

#endif
