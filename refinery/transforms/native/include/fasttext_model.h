/* A supervised fastText model in memory, laid out for prediction.
 *
 * Rows of the input matrix are plain floats, `stride` apart (a quantised matrix is multiplied out once: fastText
 * multiplies each centroid by the row's norm before it adds it, so the sums are the same). The output matrix is kept in
 * blocks of LANES labels, column by column, so that one vector operation serves LANES labels while each label's own
 * additions stay in fastText's order. */

#ifndef REFINERY_FASTTEXT_MODEL_H
#define REFINERY_FASTTEXT_MODEL_H

#include "kernel.h"

#include "large_pages.h"

enum { LANES = 8, MAX_DIM = 1024, MAX_LABELS = 4096, MAX_NGRAM = 64, MAX_BUCKETS = 1 << 28, MAX_TABLE = 256 << 20 };
enum { HIERARCHICAL = 1, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL }; /* fastText's loss_name */
enum { SIGMOID_STEPS = 512, SIGMOID_END = 8 };

typedef float Vector4 __attribute__((vector_size(16), aligned(4), may_alias));

typedef struct {
    int32_t left, right; /* -1 in a leaf */
} Node;

typedef struct {
    uint32_t hash;
    int32_t id; /* -1: empty */
} WordSlot;

typedef struct {
    int32_t dim, loss, word_ngrams, min_chars, max_chars; /* characters of an n-gram within a word; max 0: none */
    uint32_t buckets;
    uint64_t bucket_inverse; /* 2^64 / buckets, rounded up: h % buckets by two multiplications (Lemire et al. 2019) */
    int32_t words, labels;
    /* dictionary: words, then labels; a token is looked up by fastText's hash */
    char *names;      /* all names, one behind the other */
    uint64_t *starts; /* words + labels + 1 offsets into names */
    WordSlot *slots;
    uint32_t slot_mask;
    /* n-grams: all buckets (kept NULL and pruned 0), those of a bitmap, or none */
    int pruned;
    uint64_t *kept;        /* one bit per bucket */
    uint32_t *kept_before; /* bits set in the words of `kept` before this one */
    int32_t *kept_row;     /* row of the input matrix of the n-th bit */
    /* input */
    float *input;
    size_t stride, input_size; /* floats per row; bytes */
    /* output */
    float *output; /* [labels / LANES, rounded up][dim][LANES] */
    float *norms;  /* a factor per label, NULL: 1 */
    int dense_output;
    Node *tree; /* 2 labels - 1 nodes, leaves first: hierarchical softmax */
    float sigmoid[SIGMOID_STEPS + 1];
} Model;

static void free_model(Model *m)
{
    PyMem_RawFree(m->names);
    PyMem_RawFree(m->starts);
    PyMem_RawFree(m->slots);
    PyMem_RawFree(m->kept);
    PyMem_RawFree(m->kept_before);
    PyMem_RawFree(m->kept_row);
    free_pages(m->input, m->input_size);
    PyMem_RawFree(m->output);
    PyMem_RawFree(m->norms);
    PyMem_RawFree(m->tree);
    memset(m, 0, sizeof *m);
}

/* fastText's hash of a word or n-gram: FNV-1a over signed bytes. */
#define FNV_START 2166136261u
#define FNV_STEP(hash, byte) (((hash) ^ (uint32_t)(int32_t)(int8_t)(byte)) * 16777619u)

static inline uint32_t hash_bytes(const char *bytes, size_t n)
{
    uint32_t hash = FNV_START;
    for (size_t i = 0; i < n; i++)
        hash = FNV_STEP(hash, bytes[i]);
    return hash;
}

static inline uint32_t first_slot(const Model *m, uint32_t hash)
{
    return (uint32_t)(hash * 0x9E3779B97F4A7C15ULL >> 32) & m->slot_mask;
}

static inline uint32_t bucket_of(const Model *m, uint32_t hash)
{
    return (uint32_t)((unsigned __int128)(m->bucket_inverse * hash) * m->buckets >> 64);
}

/* The slot of a name, or the empty one where it belongs; `steps` counts slots passed over. */
static inline WordSlot *find_word(const Model *m, const char *name, size_t n, uint32_t hash, uint64_t *steps)
{
    uint32_t at = first_slot(m, hash);
    for (;; at = (at + 1) & m->slot_mask, ++*steps) {
        WordSlot *slot = &m->slots[at];
        if (slot->id < 0)
            return slot;
        const uint64_t start = m->starts[slot->id];
        if (slot->hash == hash && m->starts[slot->id + 1] - start == n && !memcmp(m->names + start, name, n))
            return slot;
    }
}

#endif
