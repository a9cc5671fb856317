/* Pieces of one text as dense numbers: two have the same number when they are the same string, and only then.
 *
 * A piece's hash has a key that no text knows (keyed_hash.h), so that no text can choose pieces that share one; pieces
 * with equal hashes are compared. One that differs looks under a further hash, made of the first. */

#include "counting_characters.h"

typedef struct { uint32_t start, chars, count; } Span; /* the first occurrence, and how many there are */
typedef struct { Table table; Vector spans; } Spans;

static HashKey span_key;                   /* drawn when the module is loaded */
static uint64_t hash_bits = ~UINT64_C(0); /* tests look at fewer bits, so that hashes collide */

INLINE uint64_t read_4(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE uint64_t read_8(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE uint64_t hash_bytes(const uint8_t *at, size_t bytes)
{
    uint64_t x = 0, y = 0, seed = span_key.c;
    size_t left = bytes;
    for (; left > 16; left -= 16, at += 16)
        seed = fold(read_8(at) ^ span_key.a, read_8(at + 8) ^ seed);
    if (left >= 8) {
        x = read_8(at);
        y = read_8(at + left - 8);
    } else if (left >= 4) {
        x = read_4(at);
        y = read_4(at + left - 4);
    } else if (left) {
        x = (uint64_t)at[0] << 16 | (uint64_t)at[left / 2] << 8 | at[left - 1];
    }
    return fold(fold(x ^ span_key.a, y ^ seed) ^ bytes, span_key.d);
}

INLINE int same_bytes(const uint8_t *x, const uint8_t *y, size_t bytes)
{
    if (bytes > 16)
        return memcmp(x, y, bytes) == 0;
    if (bytes >= 8)
        return read_8(x) == read_8(y) && read_8(x + bytes - 8) == read_8(y + bytes - 8);
    if (bytes >= 4)
        return read_4(x) == read_4(y) && read_4(x + bytes - 4) == read_4(y + bytes - 4);
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != y[i])
            return 0;
    return 1;
}

/* The number of the piece of `chars` characters at `start`: 0, 1, … in order of first occurrence. -1: no memory. */
INLINE int64_t span_id(Spans *s, const void *data, const int kind, size_t start, size_t chars)
{
    const uint8_t *at = (const uint8_t *)data + start * (size_t)kind;
    uint64_t key = hash_bytes(at, chars * (size_t)kind) & hash_bits;
    for (;; key = mix(key + 1)) {
        const size_t used = s->table.used;
        const int64_t id = table_insert(&s->table, key);
        if (id < 0 || reserve(&s->spans, used + 1, sizeof(Span)) < 0)
            return -1;
        Span *span = (Span *)s->spans.items + id;
        if ((size_t)id == used) {
            *span = (Span){(uint32_t)start, (uint32_t)chars, 1};
            return id;
        }
        if (span->chars == chars
            && same_bytes((const uint8_t *)data + (size_t)span->start * (size_t)kind, at, chars * (size_t)kind)) {
            span->count++;
            return id;
        }
    }
}
