/* The tables of cues.c, as transforms/redaction/prefilter/tables.py makes them, and the checks of what they say. */

#ifndef REFINERY_CUE_TABLES_H
#define REFINERY_CUE_TABLES_H

#include "kernel.h"

enum { BUCKETS = 21, WINDOW = 4, LONGEST = 8, STATE_WORDS = 4, RUN_SETS = 32, LEAST_RUN = 16 };
enum { AT_FIRST = 1, AT_EDGE = 2 }; /* a beginning: only where the text begins, only where a word begins or ends */

typedef struct {
    uint64_t bits[4];
} Set; /* of bytes */

typedef struct {
    uint64_t bits[STATE_WORDS];
} States;

/* How a match begins. */
typedef struct {
    uint32_t pattern, automaton; /* automaton 0: none, what follows does not matter */
    uint32_t window; /* how far behind the beginning the window of WINDOW bytes is */
    uint32_t length, flags;
    uint32_t sets[LONGEST];
} Cue;

typedef struct {
    Set reads;
    States follow;
} State;

typedef struct {
    uint32_t set, pattern, least; /* bytes */
} Run;

/* cues: by buckets, those of bucket b are bucket[b] to bucket[b + 1]; the last bucket is that of cues which are looked
 * for at the beginning of the text alone. Set 0 is that of all bytes. */
typedef struct {
    const uint32_t *bucket, *most, *automata;
    const Cue *cues;
    const Run *runs;
    const Set *sets;
    const State *states;
    const States *first;
    Py_ssize_t cue_count, patterns, set_count, automaton_count, state_count, run_count;
} Tables;

enum { BUCKET_TABLE, CUE_TABLE, SET_TABLE, FIRST_TABLE, AUTOMATON_TABLE, STATE_TABLE, MOST_TABLE, RUN_TABLE, TABLES };
static const Array TABLE_ARRAYS[TABLES] = {
    {"bucket", UINT32, 0},   {"cues", UINT32, 0},   {"sets", UINT64, 0}, {"first", UINT64, 0},
    {"automata", UINT32, 0}, {"states", UINT64, 0}, {"most", UINT32, 0}, {"runs", UINT32, 0},
};

/* Whether a table has as many rows of that many bytes; an exception if not. */
CHECK int sized(int table, const Py_ssize_t *sizes, size_t row, Py_ssize_t rows)
{
    if (sizes[table] == (Py_ssize_t)row * rows)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s: %zd bytes given, %zd rows of %zu bytes are needed", TABLE_ARRAYS[table].name,
                 sizes[table], rows, row);
    return 0;
}

CHECK int refuse(const char *name)
{
    PyErr_Format(PyExc_ValueError, "%s: a number out of bounds", name);
    return -1;
}

CHECK int check_cues(const Tables *t)
{
    for (Py_ssize_t i = 0; i < t->cue_count; i++) {
        const Cue *cue = &t->cues[i];
        if (cue->pattern >= (size_t)t->patterns || cue->automaton >= (size_t)t->automaton_count || cue->length < 2
            || cue->length > LONGEST || cue->window > cue->length - 2)
            return refuse("cues");
        for (int j = 0; j < LONGEST; j++)
            if (cue->sets[j] >= (size_t)t->set_count)
                return refuse("cues");
    }
    return 0;
}

/* An automaton's states, and what they lead to, are its own. */
CHECK int check_automata(const Tables *t)
{
    if (t->automata[0] != 0 || t->automata[t->automaton_count] != (size_t)t->state_count)
        return refuse("automata");
    for (Py_ssize_t a = 0; a < t->automaton_count; a++) {
        const uint32_t from = t->automata[a], to = t->automata[a + 1];
        if (to < from || to - from > 64 * STATE_WORDS || to > (size_t)t->state_count)
            return refuse("automata");
        for (uint32_t s = from; s <= to; s++) {
            const States *leads = s < to ? &t->states[s].follow : &t->first[a];
            for (uint32_t k = to - from; k < 64 * STATE_WORDS; k++)
                if (leads->bits[k / 64] >> (k % 64) & 1)
                    return refuse("states");
        }
    }
    return 0;
}

/* The tables at `from`; -1 and an exception where one does not fit the others. */
CHECK int read_tables(Tables *t, void *const *from, const Py_ssize_t *sizes)
{
    t->cue_count = sizes[CUE_TABLE] / (Py_ssize_t)sizeof(Cue);
    t->patterns = sizes[MOST_TABLE] / 4;
    t->set_count = sizes[SET_TABLE] / (Py_ssize_t)sizeof(Set);
    t->automaton_count = sizes[FIRST_TABLE] / (Py_ssize_t)sizeof(States);
    t->state_count = sizes[STATE_TABLE] / (Py_ssize_t)sizeof(State);
    t->run_count = sizes[RUN_TABLE] / (Py_ssize_t)sizeof(Run);
    if (!sized(BUCKET_TABLE, sizes, 4, BUCKETS + 2) || !sized(CUE_TABLE, sizes, sizeof(Cue), t->cue_count)
        || !sized(SET_TABLE, sizes, sizeof(Set), t->set_count)
        || !sized(FIRST_TABLE, sizes, sizeof(States), t->automaton_count)
        || !sized(AUTOMATON_TABLE, sizes, 4, t->automaton_count + 1)
        || !sized(STATE_TABLE, sizes, sizeof(State), t->state_count)
        || !sized(RUN_TABLE, sizes, sizeof(Run), t->run_count))
        return -1;
    t->bucket = from[BUCKET_TABLE];
    t->cues = from[CUE_TABLE];
    t->sets = from[SET_TABLE];
    t->first = from[FIRST_TABLE];
    t->automata = from[AUTOMATON_TABLE];
    t->states = from[STATE_TABLE];
    t->most = from[MOST_TABLE];
    t->runs = from[RUN_TABLE];
    if (!t->set_count)
        return refuse("sets");
    if (t->run_count > RUN_SETS)
        return refuse("runs");
    for (Py_ssize_t r = 0; r < t->run_count; r++)
        if (t->runs[r].set >= (size_t)t->set_count || t->runs[r].pattern >= (size_t)t->patterns
            || t->runs[r].least < LEAST_RUN)
            return refuse("runs");
    for (int b = 0; b <= BUCKETS; b++)
        if (t->bucket[b] > t->bucket[b + 1] || t->bucket[b + 1] > (size_t)t->cue_count)
            return refuse("bucket");
    return check_cues(t) < 0 || check_automata(t) < 0 ? -1 : 0;
}

#endif
