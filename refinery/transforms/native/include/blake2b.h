/* BLAKE2b without a key (RFC 7693), for hashes that a kernel makes of bytes that it has just written.
 *
 * hashlib's gives up the GIL for every text above 2 KB, and waits for it again behind the other threads of a worker. */

#ifndef REFINERY_BLAKE2B_H
#define REFINERY_BLAKE2B_H

#include <stdint.h>
#include <string.h>

#define BLAKE2B_BLOCK 128

static const uint64_t BLAKE2B_IV[8] = {
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
};

#define ROTATED(x, bits) ((x) >> (bits) | (x) << (64 - (bits)))

#define MIX(a, b, c, d, x, y)                                                                                          \
    do {                                                                                                               \
        v[a] += v[b] + m[x];                                                                                           \
        v[d] = ROTATED(v[d] ^ v[a], 32);                                                                               \
        v[c] += v[d];                                                                                                  \
        v[b] = ROTATED(v[b] ^ v[c], 24);                                                                               \
        v[a] += v[b] + m[y];                                                                                           \
        v[d] = ROTATED(v[d] ^ v[a], 16);                                                                               \
        v[c] += v[d];                                                                                                  \
        v[b] = ROTATED(v[b] ^ v[c], 63);                                                                               \
    } while (0)

#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                                    \
    do {                                                                                                               \
        MIX(0, 4, 8, 12, s0, s1);                                                                                      \
        MIX(1, 5, 9, 13, s2, s3);                                                                                      \
        MIX(2, 6, 10, 14, s4, s5);                                                                                     \
        MIX(3, 7, 11, 15, s6, s7);                                                                                     \
        MIX(0, 5, 10, 15, s8, s9);                                                                                     \
        MIX(1, 6, 11, 12, s10, s11);                                                                                   \
        MIX(2, 7, 8, 13, s12, s13);                                                                                    \
        MIX(3, 4, 9, 14, s14, s15);                                                                                    \
    } while (0)

/* Take a block into the state `h`. count: bytes of the message up to its end. last: all bits, or none. */
static void blake2b_block(uint64_t h[8], const uint8_t *block, uint64_t count, uint64_t last)
{
    uint64_t v[16], m[16];
    memcpy(m, block, BLAKE2B_BLOCK); /* little-endian, as kernel.h requires */
    memcpy(v, h, 64);
    memcpy(v + 8, BLAKE2B_IV, 64);
    v[12] ^= count;
    v[14] ^= last;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* The hash of `size` bytes, of 1 to 64 bytes. */
static void blake2b(uint8_t *digest, int digest_size, const uint8_t *data, uint64_t size)
{
    uint64_t h[8], done = 0;
    uint8_t rest[BLAKE2B_BLOCK] = {0};
    memcpy(h, BLAKE2B_IV, 64);
    h[0] ^= 0x01010000u ^ (uint64_t)digest_size;
    for (; size - done > BLAKE2B_BLOCK; done += BLAKE2B_BLOCK)
        blake2b_block(h, data + done, done + BLAKE2B_BLOCK, 0);
    if (size > done)
        memcpy(rest, data + done, size - done);
    blake2b_block(h, rest, size, ~(uint64_t)0);
    memcpy(digest, h, (size_t)digest_size);
}

#endif
