/* Tokens widened to int64. */

#ifndef REFINERY_WIDEN_H
#define REFINERY_WIDEN_H

#include "kernel.h"

#define LINE 64 /* bytes of a cache line; elsewhere too many or too few are asked for, which costs time alone */

/* Widens `size` tokens; next: `ahead` tokens that come after them, which are far away in memory. */
#define WIDEN(name, type)                                                                                              \
    VECTORISED static void name(const type *restrict piece, Py_ssize_t size, const type *restrict next,                \
                                Py_ssize_t ahead, int64_t *restrict out)                                               \
    {                                                                                                                  \
        enum { STEP = LINE / sizeof(type) };                                                                           \
        Py_ssize_t i = 0;                                                                                              \
        for (; i + STEP <= size; i += STEP) {                                                                          \
            if (i < ahead)                                                                                             \
                __builtin_prefetch(next + i);                                                                          \
            for (int k = 0; k < STEP; k++)                                                                             \
                out[i + k] = piece[i + k];                                                                             \
        }                                                                                                              \
        if (i < ahead)                                                                                                 \
            __builtin_prefetch(next + i);                                                                              \
        for (; i < size; i++)                                                                                          \
            out[i] = piece[i];                                                                                         \
    }

WIDEN(widen_uint16, uint16_t)
WIDEN(widen_int32, int32_t)
WIDEN(widen_int64, int64_t) /* no wider, copied: files of other tools */

#endif
