/* Where a text may match any of some patterns: one look at every byte for how their matches begin.
 *
 * Python derives the beginnings from the patterns (transforms/redaction/prefilter): up to eight sets of bytes, then an
 * automaton for what follows. Four neighbouring bytes of each are its window. A table of pairs says for every place of
 * the text which of 21 buckets have a window there; the sets and the automaton then decide. More may be found than the
 * patterns match, never less.
 * Cost: linear. About 1 ns a byte where nothing looks like a beginning; at most one look a byte is taken at what does,
 * then the kernel gives up and says so. Safety: the tables are copied and checked when the object is made, the text is
 * only read. */

#include "cue_index.h"

enum { READ = 64, SPARE = 4096, BLOCK = 8 }; /* bytes that an automaton reads; looks that any text may take */

typedef struct {
    PyObject_HEAD
    Tables tables;
    void *copies[TABLES]; /* what is checked once must not change */
    Index index;
} Cues;

typedef struct {
    uint32_t pattern;
    int64_t place;
} Place;

typedef struct {
    const Tables *tables;
    const Index *index;
    const uint8_t *data;
    int64_t size, looks;  /* looks: that are left */
    uint64_t *alive;      /* by group: cues of patterns that have not been found often enough */
    uint32_t *count;      /* by pattern: places found */
    int64_t run_end[RUN_SETS]; /* up to where runs have been looked for */
    Place *places;
    size_t used, room;
    int failed; /* no memory */
} Search;

INLINE int is_word(uint8_t byte)
{
    return (uint8_t)((byte | 32) - 'a') < 26 || (uint8_t)(byte - '0') < 10 || byte == '_';
}

static int at_edge(const Search *s, int64_t place)
{
    return (place > 0 && is_word(s->data[place - 1])) != (place < s->size && is_word(s->data[place]));
}

/* Whether an automaton comes to its end from `at` on, or has not failed after READ bytes. */
static int accepts(Search *s, uint32_t automaton, int64_t at)
{
    const Tables *t = s->tables;
    const State *states = t->states + t->automata[automaton];
    const int words = words_of(t, automaton);
    const uint64_t *reads = s->index->reads + s->index->reads_at[automaton];
    States now = t->first[automaton];
    for (const int64_t stop = at + READ;; at++) {
        if (now.bits[0] & 1 || at == stop)
            return 1;
        if (at >= s->size)
            return 0;
        const uint64_t *here = reads + (size_t)s->data[at] * (size_t)words;
        States next = {{0}};
        uint64_t any = 0;
        for (int w = 0; w < words; w++)
            for (uint64_t live = now.bits[w] & here[w]; live; live &= live - 1) {
                const States *follow = &states[64 * w + __builtin_ctzll(live)].follow;
                s->looks--;
                for (int v = 0; v < words; v++) {
                    next.bits[v] |= follow->bits[v];
                    any |= follow->bits[v];
                }
            }
        if (!any)
            return 0;
        now = next;
    }
}

static void keep(Search *s, uint32_t pattern, int64_t place)
{
    if (s->count[pattern]++ >= s->tables->most[pattern])
        return; /* too many: the count says so */
    if (s->used == s->room) {
        const size_t room = s->room ? 2 * s->room : 64;
        Place *more = PyMem_RawRealloc(s->places, room * sizeof *more);
        if (!more) {
            s->failed = 1;
            return;
        }
        s->places = more;
        s->room = room;
    }
    s->places[s->used++] = (Place){pattern, place};
}

/* One cue whose window stands at `at`. */
static void look_at(Search *s, const Cue *cue, int64_t at)
{
    const int64_t start = at - cue->window;
    if (start < 0 || start + cue->length > s->size || ((cue->flags & AT_FIRST) && start))
        return;
    for (uint32_t j = 0; j < cue->length; j++)
        if (!holds(&s->tables->sets[cue->sets[j]], s->data[start + j]))
            return;
    if ((cue->flags & AT_EDGE) && !at_edge(s, start))
        return;
    if (!cue->automaton || accepts(s, cue->automaton, start + cue->length))
        keep(s, cue->pattern, start);
}

static __attribute__((noinline)) void look_at_all(Search *s, uint32_t group, uint64_t found, int64_t at)
{
    const Tables *t = s->tables;
    for (; found; found &= found - 1) {
        const int bit = __builtin_ctzll(found);
        const Cue *cue = &t->cues[s->index->first_cue[group] + (uint32_t)bit];
        s->looks--;
        if (s->count[cue->pattern] >= s->index->enough[cue->pattern])
            s->alive[group] &= ~(1ull << bit);
        else
            look_at(s, cue, at);
    }
}

/* The cues of some buckets whose window stands at `at`; byte: the same place, and at least WINDOW bytes. */
INLINE void look(Search *s, uint32_t buckets, int64_t at, const uint8_t *byte)
{
    const Index *index = s->index;
    for (; buckets; buckets &= buckets - 1) {
        const int bucket = __builtin_ctz(buckets);
        for (uint32_t g = index->bucket_group[bucket]; g < index->bucket_group[bucket + 1]; g++) {
            const uint64_t *window = index->windows + (size_t)g * WINDOW * 256;
            const uint64_t found = s->alive[g] & window[byte[0]] & window[256 + byte[1]] & window[512 + byte[2]]
                                   & window[768 + byte[3]];
            s->looks--;
            if (found)
                look_at_all(s, g, found, at);
        }
    }
}

INLINE uint64_t pair_at(const uint64_t *pairs, const uint8_t *byte)
{
    uint16_t pair;
    memcpy(&pair, byte, sizeof pair);
    return pairs[pair];
}

/* The buckets that have a window whose pairs are those of `byte` and the three behind it. */
INLINE uint32_t buckets_of(const uint64_t *pairs, const uint8_t *byte)
{
    const uint64_t all = pair_at(pairs, byte) & pair_at(pairs, byte + 1) >> BUCKETS
                         & pair_at(pairs, byte + 2) >> 2 * BUCKETS;
    return (uint32_t)all & ALL_BUCKETS;
}

/* Runs around BLOCK + 1 bytes from `at` on, which are of some set of the runs each. */
static __attribute__((noinline)) void look_for_runs(Search *s, int64_t at)
{
    const Tables *t = s->tables;
    for (Py_ssize_t r = 0; r < t->run_count; r++) {
        const Run *run = &t->runs[r];
        const Set *set = &t->sets[run->set];
        int64_t start = at, end = at;
        if (at < s->run_end[r] || s->count[run->pattern])
            continue;
        while (end < s->size && end - at <= BLOCK && holds(set, s->data[end]))
            end++;
        if (end - at <= BLOCK)
            continue;
        while (start > 0 && at - start < BLOCK && holds(set, s->data[start - 1]))
            start--;
        while (end < s->size && end - start < run->least && holds(set, s->data[end]))
            end++;
        s->run_end[r] = end;
        if (end - start >= run->least)
            keep(s, run->pattern, start);
    }
}

/* The windows among BLOCK places. */
static __attribute__((noinline)) void look_in_block(Search *s, int64_t at)
{
    const uint8_t *byte = s->data + at;
    uint32_t buckets[BLOCK], where = 0;
    for (int j = 0; j < BLOCK; j++) {
        buckets[j] = buckets_of(s->index->pairs, byte + j);
        where |= (uint32_t)(buckets[j] != 0) << j;
    }
    for (; where; where &= where - 1) {
        const int j = __builtin_ctz(where);
        look(s, buckets[j], at + j, byte + j);
    }
}

static void search(Search *s)
{
    const uint64_t *table = s->index->pairs;
    uint8_t end[BLOCK + 2 * WINDOW] = {0}; /* the beginning, or what is left at the end, and zeros behind it */
    memcpy(end, s->data, (size_t)(s->size < WINDOW ? s->size : WINDOW));
    look(s, 1u << BUCKETS, 0, end);
    int64_t at = 0;
    for (; at + BLOCK + WINDOW <= s->size && s->looks >= 0 && !s->failed; at += BLOCK) {
        const uint8_t *byte = s->data + at;
        uint64_t pairs[BLOCK + 2], any = 0, all = IN_RUN;
        for (int j = 0; j < BLOCK + 2; j++)
            pairs[j] = pair_at(table, byte + j);
        for (int j = 0; j < BLOCK; j++) {
            any |= pairs[j] & pairs[j + 1] >> BUCKETS & pairs[j + 2] >> 2 * BUCKETS;
            all &= pairs[j];
        }
        if (any & ALL_BUCKETS)
            look_in_block(s, at);
        if (all)
            look_for_runs(s, at);
    }
    const int64_t begin = at;
    memset(end, 0, sizeof end);
    if (at < s->size)
        memcpy(end, s->data + at, (size_t)(s->size - at < BLOCK + WINDOW ? s->size - at : BLOCK + WINDOW));
    for (; at + 1 < s->size && s->looks >= 0 && !s->failed; at++) {
        const uint8_t *byte = end + (at - begin);
        look(s, buckets_of(table, byte), at, byte);
    }
    if (begin + BLOCK < s->size)
        look_for_runs(s, begin);
}

/* {pattern: places, or None where there are more than `most`}. */
static PyObject *results(const Search *s)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; found && i < s->used; i++) {
        const uint32_t pattern = s->places[i].pattern;
        PyObject *key = PyLong_FromUnsignedLong(pattern), *place = PyLong_FromLongLong(s->places[i].place);
        PyObject *list = key ? PyDict_GetItemWithError(found, key) : NULL; /* borrowed */
        int failed = !key || !place || (!list && PyErr_Occurred());
        if (!failed && !list) {
            list = s->count[pattern] > s->tables->most[pattern] && s->tables->most[pattern] > 1 ? Py_NewRef(Py_None)
                                                                                               : PyList_New(0);
            failed = !list || PyDict_SetItem(found, key, list) < 0;
            Py_XDECREF(list); /* the dict has it */
        }
        if (!failed && list != Py_None)
            failed = PyList_Append(list, place) < 0;
        Py_XDECREF(key);
        Py_XDECREF(place);
        if (failed)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *Cues_find(Cues *self, PyObject *data)
{
    if (!PyBytes_Check(data))
        return PyErr_Format(PyExc_TypeError, "data: bytes are needed");
    const Tables *t = &self->tables;
    Search s = {.tables = t, .index = &self->index};
    s.data = (const uint8_t *)PyBytes_AS_STRING(data);
    s.size = PyBytes_GET_SIZE(data);
    s.looks = s.size + SPARE;
    s.alive = PyMem_RawMalloc(self->index.groups * sizeof *s.alive + 1);
    s.count = PyMem_RawCalloc((size_t)t->patterns + 1, sizeof *s.count);
    PyObject *result = NULL;
    if (s.alive && s.count) {
        memset(s.alive, 0xFF, self->index.groups * sizeof *s.alive);
        Py_BEGIN_ALLOW_THREADS
        search(&s);
        Py_END_ALLOW_THREADS
        if (s.failed)
            PyErr_NoMemory();
        else
            result = s.looks < 0 ? Py_NewRef(Py_None) : results(&s);
    } else
        PyErr_NoMemory();
    PyMem_RawFree(s.alive);
    PyMem_RawFree(s.count);
    PyMem_RawFree(s.places);
    return result;
}

static PyObject *Cues_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *given[TABLES];
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(PyExc_TypeError, "Cues takes no keyword arguments");
    if (!PyArg_ParseTuple(args, "OOOOOOOO:Cues", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
                          &given[6], &given[7]))
        return NULL;
    Cues *self = (Cues *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    Py_buffer views[TABLES];
    if (take_arrays(TABLE_ARRAYS, given, views, TABLES) == 0) {
        Py_ssize_t sizes[TABLES];
        int failed = 0;
        for (int i = 0; i < TABLES; i++) {
            sizes[i] = views[i].len;
            if (!(self->copies[i] = PyMem_RawMalloc((size_t)sizes[i] + 1)))
                failed = 1;
            else if (sizes[i])
                memcpy(self->copies[i], views[i].buf, (size_t)sizes[i]);
        }
        release_arrays(views, TABLES);
        if (!failed && read_tables(&self->tables, self->copies, sizes) == 0) {
            if (make_index(&self->index, &self->tables) == 0)
                return (PyObject *)self;
            failed = 1;
        }
        if (failed)
            PyErr_NoMemory();
    }
    Py_DECREF(self);
    return NULL;
}

static void Cues_dealloc(Cues *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < TABLES; i++)
        PyMem_RawFree(self->copies[i]);
    free_index(&self->index);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Cues_methods[] = {
    {"find", (PyCFunction)Cues_find, METH_O,
     "find(data) -> {pattern: where its matches may begin}; None instead of places: in more than `most` of them.\n\n"
     "A pattern that is not in it does not match. None for a text that takes too many looks: all patterns may match."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Cues_slots[] = {
    {Py_tp_doc, "Cues(bucket, cues, sets, first, automata, states, most, runs): tables as\n"
                "transforms/redaction/prefilter/tables.py makes them. ValueError for others."},
    {Py_tp_new, Cues_new},
    {Py_tp_dealloc, Cues_dealloc},
    {Py_tp_methods, Cues_methods},
    {0, NULL}};

static PyType_Spec Cues_spec = {"transforms.native.cues.Cues", sizeof(Cues), 0, Py_TPFLAGS_DEFAULT, Cues_slots};

static int load(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Cues_spec);
    const int failed = !type || PyModule_AddObjectRef(module, "Cues", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, load}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cues", "Where texts may match some patterns.", 0, NULL, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cues(void) { return PyModuleDef_Init(&module); }
