/* Pieces of one text as dense numbers: two have the same number when they are the same string, and only then.
 *
 * Open addressing with linear probing, at most half full. A piece's hash has a key that no text knows (keyed_hash.h), so
 * that no text can choose pieces that meet; pieces whose hashes are equal are compared. Most words have at most eight
 * bytes: these are one number, and need no look at the text. */

#include "counting_characters.h"

typedef struct { uint64_t head; uint32_t start, chars, count; } Span; /* the first occurrence; how many there are */
typedef struct { uint32_t hash, id; } SpanSlot;                       /* id 0: free, else the number and 1 */
typedef struct {
    Vector slots, spans;
    size_t mask, used, steps; /* steps: slots passed over since reset */
} Spans;

static HashKey span_key;                   /* drawn when the module is loaded */
static uint64_t hash_bits = ~UINT64_C(0); /* tests look at fewer bits, so that hashes collide */

INLINE uint64_t read_8(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* The first eight bytes of a piece, or fewer. `end`: of the text, behind which nothing is read. */
INLINE uint64_t head_of(const uint8_t *at, size_t bytes, const uint8_t *end)
{
    uint64_t head = 0;
    if (end - at >= 8)
        return bytes >= 8 ? read_8(at) : read_8(at) & ((UINT64_C(1) << 8 * bytes) - 1);
    for (size_t i = 0; i < bytes; i++)
        head |= (uint64_t)at[i] << 8 * i;
    return head;
}

INLINE uint64_t hash_piece(uint64_t head, const uint8_t *at, size_t bytes)
{
    uint64_t hash = fold(head ^ span_key.a, span_key.b ^ bytes << 32);
    if (bytes > 8) {
        for (; bytes > 16; bytes -= 8)
            hash = fold(read_8(at += 8) ^ hash, span_key.d);
        hash = fold(read_8(at + bytes - 8) ^ hash, span_key.d);
    }
    return hash & hash_bits;
}

static int spans_reset(Spans *s, size_t expected)
{
    size_t size = MIN_SLOTS;
    while (size < 2 * expected && size < MAX_FIRST_SLOTS)
        size *= 2;
    if (reserve(&s->slots, size, sizeof(SpanSlot)) < 0)
        return -1;
    memset(s->slots.items, 0, size * sizeof(SpanSlot));
    s->mask = size - 1;
    s->used = s->steps = 0;
    return 0;
}

static int spans_grow(Spans *s)
{
    const size_t size = 2 * (s->mask + 1);
    const SpanSlot *old = s->slots.items;
    SpanSlot *slots = PyMem_RawCalloc(size, sizeof(SpanSlot));
    if (!slots)
        return -1;
    for (size_t i = 0; i <= s->mask; i++) {
        if (!old[i].id)
            continue;
        size_t at = old[i].hash & (size - 1);
        for (; slots[at].id; s->steps++)
            at = (at + 1) & (size - 1);
        slots[at] = old[i];
    }
    PyMem_RawFree(s->slots.items);
    s->slots = (Vector){slots, size};
    s->mask = size - 1;
    return 0;
}

/* The number of the piece of `chars` characters at `start`: 0, 1, … in order of first occurrence. -1: no memory. */
INLINE int64_t span_id(Spans *s, const void *data, const int kind, size_t n, size_t start, size_t chars)
{
    const uint8_t *text = data, *at = text + start * (size_t)kind;
    const size_t bytes = chars * (size_t)kind;
    const uint64_t head = head_of(at, bytes, text + n * (size_t)kind);
    const uint32_t hash = (uint32_t)hash_piece(head, at, bytes);
    SpanSlot *slots = s->slots.items;
    size_t slot = hash & s->mask;
    for (; slots[slot].id; slot = (slot + 1) & s->mask, s->steps++) {
        Span *span = (Span *)s->spans.items + slots[slot].id - 1;
        if (slots[slot].hash == hash && span->head == head && span->chars == chars
            && (bytes <= 8 || memcmp(text + (size_t)span->start * (size_t)kind, at, bytes) == 0)) {
            span->count++;
            return slots[slot].id - 1;
        }
    }
    if (reserve(&s->spans, s->used + 1, sizeof(Span)) < 0)
        return -1;
    ((Span *)s->spans.items)[s->used] = (Span){head, (uint32_t)start, (uint32_t)chars, 1};
    slots[slot] = (SpanSlot){hash, (uint32_t)++s->used};
    const int64_t id = (int64_t)s->used - 1;
    return 2 * s->used > s->mask && spans_grow(s) < 0 ? -1 : id;
}
