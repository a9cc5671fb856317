/* SentencePiece unigram: the split of a word whose pieces have the highest sum of scores (Viterbi).
 *
 * The library adds scores up in float32 from the start of the text, so where two splits are nearly as good, the sum of
 * all that came before decides how both are rounded, and which one wins. Here the sum at the start of a word is the
 * library's own, bit for bit, and so is every sum within the word; words can be taken one by one because no piece
 * reaches from one into the next.
 *
 * For the cache it is also worked out up to which sum the split is the same. All sums of the word are below a power of
 * two 2^k, so each addition is wrong by at most half of 2^(k - 24); a sum of up to m pieces is within m halves of that
 * of its true value, and two sums are compared rightly if they are more than m 2^(k - 24) apart. `margin` is by how
 * much each piece of the best split won, in double precision, whose own error is far below MARGIN_ERROR; so the split
 * holds for every k with m 2^(k - 24) < margin. (Only the comparisons at the ends of these pieces count: elsewhere it
 * matters how high a sum is, not whose it is.)
 *
 * Cost: linear in the word, times the number of pieces that begin at one place; 32 bytes of memory per byte. */

#ifndef REFINERY_PIECE_VITERBI_H
#define REFINERY_PIECE_VITERBI_H

#include <math.h>

#include "piece_charsmap.h"
#include "piece_trie.h"

#define MARGIN_ERROR 1e-6
#define RESET 100000.0f /* sums beyond are set back to 0, as the library does to keep them exact */

typedef struct {
    float sum;
    uint32_t start; /* where the last piece of the best split up to here begins; NONE if none ends here */
    uint32_t key; /* that piece, NONE for a character that is no piece */
    uint32_t true_start; /* the same by double precision */
    double true_sum, margin;
} Node;

typedef struct {
    Trie trie;
    float *scores; /* of each key */
    float unknown; /* of a character that is no piece */
} Splitter;

INLINE void consider(Node *node, uint32_t start, uint32_t key, float sum, double true_sum, double *highest) {
    if (node->start == NONE) {
        *node = (Node){sum, start, key, start, true_sum, INFINITY};
    } else {
        if (sum > node->sum) {
            node->sum = sum;
            node->start = start;
            node->key = key;
        }
        double more = true_sum - node->true_sum;
        if (more > 0) {
            node->true_sum = true_sum;
            node->true_start = start;
            node->margin = more;
        } else if (-more < node->margin) {
            node->margin = -more;
        }
    }
    double size = fabs(true_sum);
    *highest = size > *highest ? size : *highest;
}

/* Fills nodes 0 … n of a word that begins with this sum. highest: the largest sum within it, without what came before.
 * Returns the number of characters. */
static size_t viterbi(const Splitter *self, const uint8_t *word, size_t n, float before, Node *nodes, double *highest) {
    const Trie *trie = &self->trie;
    size_t frontier = 0, characters = 0;
    for (size_t i = 0; i <= n; i++) nodes[i].start = NONE;
    nodes[0].sum = before;
    nodes[0].true_sum = 0;
    *highest = 0;
    for (size_t at = 0; at < n; characters++) {
        Node *here = &nodes[at];
        if (here->sum < -RESET || here->sum > RESET) {
            float offset = here->sum;
            for (size_t i = at; i <= frontier; i++)
                if (i == at || nodes[i].start != NONE) nodes[i].sum -= offset;
        }
        size_t size = utf8_size(word[at]);
        int single = 0;
        uint32_t state = 0;
        for (size_t i = at; i < n && (state = trie_step(trie, state, word[i])) != NONE; i++) {
            uint32_t key = trie->units[state].value;
            if (key == NONE) continue;
            frontier = i + 1 > frontier ? i + 1 : frontier;
            single |= i + 1 == at + size;
            consider(&nodes[i + 1], (uint32_t)at, key, self->scores[key] + here->sum,
                     (double)self->scores[key] + here->true_sum, highest);
        }
        if (!single) {
            frontier = at + size > frontier ? at + size : frontier;
            consider(&nodes[at + size], (uint32_t)at, NONE, self->unknown + here->sum,
                     (double)self->unknown + here->true_sum, highest);
        }
        at += size;
    }
    return characters;
}

/* Below which sum (by size) in front of the word its split is this one; 0 where none is sure. */
static float safe_below(const Node *nodes, size_t n, size_t characters, double highest) {
    double margin = INFINITY;
    for (size_t at = n; at > 0; at = nodes[at].start) {
        if (nodes[at].start != nodes[at].true_start) return 0;
        margin = nodes[at].margin < margin ? nodes[at].margin : margin;
    }
    int k = 17; /* 2^17 is above RESET */
    while (k > 0 && (double)characters * ldexp(1, k - 24) >= margin - MARGIN_ERROR) k--;
    double below = ldexp(1, k) < RESET ? ldexp(1, k) : RESET;
    below -= highest + 1; /* 1: more than a sum of the word is wrong by */
    return k > 0 && below > 0 ? (float)below : 0;
}

#endif
