/* Tokens widened to int64. */

#ifndef REFINERY_WIDEN_H
#define REFINERY_WIDEN_H

#include "kernel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef int64_t Tokens __attribute__((vector_size(LINE))); /* a cache line of them */

/* Writes a line past the caches, which it would push others out of. SETTLE: before another thread reads such lines. */
INLINE void write_far(int64_t *line, const Tokens *tokens)
{
#ifdef __SSE2__
    __m128i parts[LINE / 16];
    memcpy(parts, tokens, LINE);
    for (int i = 0; i < LINE / 16; i++)
        _mm_stream_si128((__m128i *)(void *)line + i, parts[i]);
#else
    memcpy(line, tokens, LINE);
#endif
}

#ifdef __SSE2__
#define SETTLE() _mm_sfence()
#else
#define SETTLE() ((void)0)
#endif

/* Widens `size` tokens; next: `ahead` tokens that come after them, which are far away in memory. What is written begins
 * anywhere in a cache line, so it is written up to the next line first, then line by line: a store that crosses into
 * another line costs two. far: past the caches. */
#define WIDEN(name, type)                                                                                              \
    typedef type name##_narrow __attribute__((vector_size(LINE / 8 * sizeof(type))));                                  \
    VECTORISED static void name(const type *restrict piece, Py_ssize_t size, const type *restrict next,                \
                                Py_ssize_t ahead, int64_t *restrict out, int far)                                      \
    {                                                                                                                  \
        enum { STEP = LINE / sizeof(type), WIDTH = LINE / 8 };                                                         \
        const Py_ssize_t head = to_line(out) / 8 < size ? to_line(out) / 8 : size;                                     \
        Py_ssize_t i = 0;                                                                                              \
        for (; i < head; i++)                                                                                          \
            out[i] = piece[i];                                                                                         \
        for (; i + STEP <= size; i += STEP) {                                                                          \
            if (i < ahead)                                                                                             \
                __builtin_prefetch(next + i);                                                                          \
            for (int k = 0; k < STEP; k += WIDTH) {                                                                    \
                name##_narrow narrow;                                                                                  \
                memcpy(&narrow, piece + i + k, sizeof narrow);                                                         \
                const Tokens tokens = __builtin_convertvector(narrow, Tokens);                                         \
                if (far) {                                                                                             \
                    write_far(out + i + k, &tokens);                                                                   \
                } else {                                                                                               \
                    ask_ahead(out + i + k);                                                                            \
                    *(Tokens *)(void *)(out + i + k) = tokens;                                                         \
                }                                                                                                      \
            }                                                                                                          \
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
