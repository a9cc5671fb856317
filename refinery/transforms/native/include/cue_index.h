/* What cues.c looks up at every place of a text, made of its tables once. */

#ifndef REFINERY_CUE_INDEX_H
#define REFINERY_CUE_INDEX_H

#include "cue_tables.h"

enum { PAIRS = 1 << 16, ALL_BUCKETS = (1 << BUCKETS) - 1, GROUP = 64 };
#define IN_RUN (1ull << 63)

/* pairs: for two bytes, the buckets whose windows begin with them (from bit 0 on), have them in their middle (from bit
 * BUCKETS on) and end with them (from bit 2 * BUCKETS on); IN_RUN: both may be in a run.
 * Groups have 64 cues of a bucket at most, those from first_cue[g] on; the groups of bucket b are bucket_group[b] to
 * bucket_group[b + 1]. windows: for each group and each byte of a window, the cues that allow a byte there.
 * enough: by pattern, after how many places none is looked for. reads: by automaton, from reads_at on, the states that
 * read a byte. */
typedef struct {
    uint64_t *pairs, *windows, *reads;
    size_t *reads_at;
    uint32_t *first_cue, *enough;
    uint32_t bucket_group[BUCKETS + 2];
    size_t groups;
} Index;

INLINE int holds(const Set *set, uint8_t byte) { return set->bits[byte / 64] >> (byte % 64) & 1; }

/* Words of states that an automaton has. */
INLINE int words_of(const Tables *t, uint32_t automaton)
{
    return (int)((t->automata[automaton + 1] - t->automata[automaton] + 63) / 64);
}

static void free_index(Index *index)
{
    PyMem_RawFree(index->pairs);
    PyMem_RawFree(index->windows);
    PyMem_RawFree(index->reads);
    PyMem_RawFree(index->reads_at);
    PyMem_RawFree(index->first_cue);
    PyMem_RawFree(index->enough);
}

/* The set of a byte of a cue's window: behind the cue it is that of all bytes. */
static const Set *window_set(const Tables *t, const Cue *cue, uint32_t place)
{
    const uint32_t at = cue->window + place;
    return &t->sets[at < cue->length ? cue->sets[at] : 0];
}

static void index_pair(uint64_t *pairs, const Set *one, const Set *two, uint64_t bits)
{
    for (int second = 0; second < 256; second++)
        for (int first = 0; holds(two, (uint8_t)second) && first < 256; first++)
            if (holds(one, (uint8_t)first))
                pairs[first | second << 8] |= bits;
}

static void index_cues(Index *index, const Tables *t)
{
    for (uint32_t b = 0; b <= BUCKETS; b++)
        for (uint32_t g = index->bucket_group[b]; g < index->bucket_group[b + 1]; g++)
            for (uint32_t c = index->first_cue[g]; c < t->bucket[b + 1] && c < index->first_cue[g] + GROUP; c++)
                for (uint32_t place = 0; place < WINDOW; place++) {
                    const Set *set = window_set(t, &t->cues[c], place);
                    uint64_t *window = index->windows + ((size_t)g * WINDOW + place) * 256;
                    for (int byte = 0; byte < 256; byte++)
                        window[byte] |= (uint64_t)holds(set, (uint8_t)byte) << (c - index->first_cue[g]);
                    if (place && b < BUCKETS)
                        index_pair(index->pairs, window_set(t, &t->cues[c], place - 1), set,
                                   1ull << (b + (place - 1) * BUCKETS));
                }
    for (Py_ssize_t r = 0; r < t->run_count; r++)
        index_pair(index->pairs, &t->sets[t->runs[r].set], &t->sets[t->runs[r].set], IN_RUN);
}

static void index_states(Index *index, const Tables *t)
{
    for (uint32_t a = 0; a < t->automaton_count; a++) {
        const size_t words = (size_t)words_of(t, a);
        for (uint32_t state = 0; state < t->automata[a + 1] - t->automata[a]; state++)
            for (size_t byte = 0; byte < 256; byte++)
                if (holds(&t->states[t->automata[a] + state].reads, (uint8_t)byte))
                    index->reads[index->reads_at[a] + byte * words + state / 64] |= 1ull << (state % 64);
    }
}

/* Fills `index`; -1 where there is no memory. */
static int make_index(Index *index, const Tables *t)
{
    size_t size = 0, groups = 0;
    for (int b = 0; b <= BUCKETS; b++) {
        index->bucket_group[b] = (uint32_t)groups;
        groups += (t->bucket[b + 1] - t->bucket[b] + GROUP - 1) / GROUP;
    }
    index->bucket_group[BUCKETS + 1] = (uint32_t)groups;
    index->groups = groups;
    index->pairs = PyMem_RawCalloc(PAIRS, sizeof *index->pairs);
    index->windows = PyMem_RawCalloc(groups * WINDOW * 256 + 1, sizeof *index->windows);
    index->first_cue = PyMem_RawCalloc(groups + 1, sizeof *index->first_cue);
    index->enough = PyMem_RawCalloc((size_t)t->patterns + 1, sizeof *index->enough);
    index->reads_at = PyMem_RawCalloc((size_t)t->automaton_count + 1, sizeof *index->reads_at);
    if (!index->pairs || !index->windows || !index->first_cue || !index->enough || !index->reads_at)
        return -1;
    for (int b = 0; b <= BUCKETS; b++)
        for (uint32_t g = index->bucket_group[b]; g < index->bucket_group[b + 1]; g++)
            index->first_cue[g] = t->bucket[b] + GROUP * (g - index->bucket_group[b]);
    for (Py_ssize_t i = 0; i < t->patterns; i++) /* where places are wanted, one more says that they are too many */
        index->enough[i] = t->most[i] > 1 && t->most[i] < UINT32_MAX ? t->most[i] + 1 : t->most[i];
    for (uint32_t a = 0; a < t->automaton_count; a++) {
        index->reads_at[a] = size;
        size += 256 * (size_t)words_of(t, a);
    }
    if (!(index->reads = PyMem_RawCalloc(size + 1, sizeof *index->reads)))
        return -1;
    index_cues(index, t);
    index_states(index, t);
    return 0;
}

#endif
