/* A binary heap of 64-bit numbers, the least first. */

#ifndef REFINERY_HEAP_H
#define REFINERY_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Moves the number at `i` down to its place. */
static void sift_down(uint64_t *heap, size_t size, size_t i) {
    uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

/* Puts `value` in, where `i` numbers are there. */
static void sift_up(uint64_t *heap, size_t i, uint64_t value) {
    for (; i > 0 && heap[(i - 1) / 2] > value; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = value;
}

#endif
