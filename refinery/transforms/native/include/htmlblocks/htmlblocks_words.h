/* Words of blocks, and what a model's lexicon says of them.
 *
 * A word is a run of ASCII letters and digits and of characters beyond ASCII, punctuation aside; capitals of ASCII are
 * taken for small letters, and each digit for 0, so that "2024" and "1999" are one word. A lexicon is a hash table of
 * int32, a power of two of slots: the upper 24 bits of a word's hash, and below them its weight; 0 is an empty slot. A
 * word lies at most PROBES slots behind its own, so looking one up costs a bounded number of steps. */

#ifndef REFINERY_HTMLBLOCKS_WORDS_H
#define REFINERY_HTMLBLOCKS_WORDS_H

#include "htmlblocks_output.h"

enum { W_SUM, W_COUNT, W_LOWEST, W_KNOWN, W_COLUMNS };
enum { PROBES = 8, LEAST_SLOTS = 256, MOST_SLOTS = 1 << 20, MOST_SAID = 1 << 20 /* words of a block that are looked up */ };

/* The byte at `at` as part of a word, or 0. U+0080 to U+00BF and U+2000 to U+203F are punctuation, `*size` bytes long. */
static inline uint8_t word_byte(const uint8_t *at, const uint8_t *end, size_t *size)
{
    const uint8_t c = *at;
    *size = 1;
    if (c >= '0' && c <= '9')
        return '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return c | 32;
    if (c < 0x80)
        return 0;
    if (c == 0xC2 && end - at >= 2)
        return *size = 2, 0;
    if (c == 0xE2 && end - at >= 3 && at[1] == 0x80)
        return *size = 3, 0;
    return c;
}

/* Moves `*at` behind the next word and gives its hash (FNV-1a), which is never 0; 0 if there is none. */
static inline uint32_t next_word(const uint8_t **at, const uint8_t *end)
{
    uint32_t hash = 2166136261u;
    size_t size;
    int within = 0;
    while (*at < end) {
        const uint8_t c = word_byte(*at, end, &size);
        if (!c && within)
            break;
        *at += size;
        if (c) {
            within = 1;
            hash = (hash ^ c) * 16777619u;
        }
    }
    return !within ? 0 : hash ? hash : 1;
}

static inline int32_t weight_of(const int32_t *lexicon, size_t slots, uint32_t hash)
{
    for (size_t probe = 0; probe < PROBES; probe++) {
        const uint32_t entry = (uint32_t)lexicon[(hash + probe) & (slots - 1)];
        if (!entry)
            return 0;
        if ((entry ^ hash) >> 8 == 0)
            return (int8_t)(entry & 255);
    }
    return 0;
}

/* Sum of the weights of a block's words, how many words there are, the lowest weight, 0 or less, and how many have one. */
static void say(const int32_t *lexicon, size_t slots, const uint8_t *at, const uint8_t *end, int32_t *said)
{
    said[W_SUM] = said[W_COUNT] = said[W_LOWEST] = said[W_KNOWN] = 0;
    for (uint32_t hash; said[W_COUNT] < MOST_SAID && (hash = next_word(&at, end));) {
        const int32_t weight = weight_of(lexicon, slots, hash);
        said[W_SUM] += weight;
        said[W_COUNT]++;
        said[W_KNOWN] += weight != 0;
        if (weight < said[W_LOWEST])
            said[W_LOWEST] = weight;
    }
}

#endif
