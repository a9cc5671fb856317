/* The two parts that each token of a rank file is joined from: what tiktoken_file.py says and proves.
 *
 * Cost: for each token its length squared in steps of a trie, and few steps of the search for a merge across a border. */

#ifndef REFINERY_PIECE_JOINS_H
#define REFINERY_PIECE_JOINS_H

#include "piece_merge.h"

/* By rank: the ranks of the tokens that a token was joined from; its own for a single byte. */
typedef struct {
    uint32_t *left, *right;
    Merger joined; /* the pairs alone */
} Joins;

/* Whether no merge below both joins something across the border of two tokens. */
static int stay_apart(const Joins *self, uint32_t left, uint32_t right) {
    uint64_t limit = UINT64_MAX;
    for (;;) {
        const Pair *pair = find_pair(&self->joined, left, right);
        if (pair->rank != NONE && pair->rank < limit) return 0;
        int whole_left = self->right[left] == left, whole_right = self->left[right] == right;
        if (whole_left && whole_right) return 1;
        if (left > right ? !whole_left : whole_right) {
            limit = left;
            left = self->right[left];
        } else {
            limit = (uint64_t)right + 1;
            right = self->left[right];
        }
    }
}

/* The rank of the part that ends at i and the one that begins there, where they are the parts of that token. */
static int find_parts(const Joins *self, const Trie *trie, const uint32_t *ranks, const uint8_t *token, size_t n,
                      uint32_t rank, uint32_t parts[2]) {
    uint32_t state = 0;
    for (size_t i = 1; i < n; i++) {
        state = trie_step(trie, state, token[i - 1]); /* the token itself is in the trie */
        uint32_t left = trie->units[state].value, right;
        if (left == NONE || ranks[left] >= rank) continue;
        right = trie_find(trie, token + i, n - i);
        if (right == NONE || ranks[right] >= rank || !stay_apart(self, ranks[left], ranks[right])) continue;
        parts[0] = ranks[left];
        parts[1] = ranks[right];
        return 1;
    }
    return 0;
}

/* Fills rows of left rank, right rank and rank for the tokens of several bytes, in order of rank; `by_rank` has the
 * number of each rank's key. Returns the number of rows; *odd is the rank of a token that has no such parts, or NONE. */
static size_t fill_joins(Joins *self, const Trie *trie, const Keys *keys, const uint32_t *ranks, const uint32_t *by_rank,
                         uint32_t *rows, uint32_t *odd) {
    size_t count = 0;
    *odd = NONE;
    for (uint32_t rank = 0; rank < keys->count; rank++) {
        size_t start = key_start(keys, by_rank[rank]), n = keys->ends[by_rank[rank]] - start;
        uint32_t parts[2] = {rank, rank};
        if (n > 1) {
            if (!find_parts(self, trie, ranks, keys->bytes + start, n, rank, parts)) {
                *odd = rank;
                break;
            }
            *find_pair(&self->joined, parts[0], parts[1]) = (Pair){(uint64_t)parts[0] << 32 | parts[1], rank, rank};
            memcpy(rows + 3 * count++, (uint32_t[]){parts[0], parts[1], rank}, 3 * sizeof(uint32_t));
        }
        self->left[rank] = parts[0];
        self->right[rank] = parts[1];
    }
    return count;
}

#endif
