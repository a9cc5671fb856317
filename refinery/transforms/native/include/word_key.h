/* Hashes of words under a secret key, or under none: the fixed ones of words.h.
 *
 * The fixed hash of a word can be run backwards, so whoever writes a page can give it the words, shingles and minima of
 * another one. With a key a word is a polynomial over the field of 2^61 - 1 elements at a secret point (Carter and Wegman
 * 1979): two different words of up to n characters have one hash under n of 2^61 keys, whoever chose them. What comes of
 * it goes through fmix64, so that nothing adds up in the rolling hash either. It need not resist somebody who sees
 * hashes and their words. */

#ifndef REFINERY_WORD_KEY_H
#define REFINERY_WORD_KEY_H

#include "words.h"

#define WORD_KEY_BYTES 24
#define MERSENNE_61 ((UINT64_C(1) << 61) - 1)

typedef struct {
    int keyed;
    uint64_t seed, multiplier, mask; /* the hash of no character; the point; what a word's hash is masked with */
} WordKey;

typedef struct {
    const char *bytes; /* of a Python bytes object; no bytes: no key */
    Py_ssize_t size;
} KeyBytes;

/* -1 and a Python error unless `given` is a key, or none. */
CHECK int read_word_key(const KeyBytes *given, WordKey *key)
{
    uint64_t drawn[3] = {0, 0, 0};
    if (given->size != 0 && given->size != WORD_KEY_BYTES) {
        PyErr_Format(PyExc_ValueError, "key: %d bytes or none are needed, %zd given", WORD_KEY_BYTES, given->size);
        return -1;
    }
    memcpy(drawn, given->bytes, (size_t)given->size);
    key->keyed = given->size != 0;
    key->seed = key->keyed ? drawn[0] % MERSENNE_61 : WORD_SEED;
    key->multiplier = 2 + drawn[1] % (MERSENNE_61 - 2); /* neither 0 nor 1 */
    key->mask = drawn[2];
    return 0;
}

/* The hash of a word, one character further. */
INLINE uint64_t step(const WordKey *key, uint64_t hash, uint32_t character)
{
    if (!key->keyed)
        return (hash ^ character) * WORD_PRIME;
    const unsigned __int128 product = (unsigned __int128)(hash + character + 1) * key->multiplier;
    const uint64_t sum = ((uint64_t)product & MERSENNE_61) + (uint64_t)(product >> 61);
    return sum >= MERSENNE_61 ? sum - MERSENNE_61 : sum;
}

#endif
