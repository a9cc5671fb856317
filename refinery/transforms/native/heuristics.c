/* Counts for the quality heuristics: one pass over a str, every count that a rule of transforms/heuristics.py compares.

   measure(text, stop_words, max_ngram, short_line_chars, min_line_words, max_word_chars, flags) -> Features

   Words are maximal runs of non-whitespace; in scripts written without spaces (include/scripts.h) each letter with its
   combining marks is a word. Lines end where str.splitlines ends them; blank ones do not count.

   Identity of words, lines and paragraphs is a fixed 64-bit hash: among n different ones of a document, two share a
   hash with odds of about n^2 / 2^65 (3e-10 for 100,000 words). Who chooses words to share one makes them count as one
   word, in that document alone. n-grams are exact on top of that: an n-gram is the pair of the ids of its two
   (n-1)-grams, and only neighbouring repeated (n-1)-grams are looked at, since nothing else can repeat. Prose leaves
   few candidates after n = 3, so the levels up to 10 cost little more than the first two.

   Cost: linear in the characters for any text: tables stay at most half full, and slots are chosen by a hash whose key
   no text knows (include/keyed_hash.h). Memory beside the text: 12 bytes per word, up to 80 per distinct word and 68
   per distinct n-gram of one n. Safety: arguments are checked at entry; a str's characters never change, so long texts
   are read without the GIL. */

#include "counts_object.h"
#include "heuristics_scan.h"

#define KEEP_BYTES ((size_t)8 << 20) /* a larger arena is freed after its document */

/* One arena waits here between documents. It is taken and put back under the GIL; a concurrent call makes its own. */
static Arena *spare;

static size_t last_steps; /* of the last call's tables, for tests; set under the GIL */

static int run(PyObject *text, size_t n, const Options *o, Arena *a, Counts *k, State *s)
{
    const void *data = PyUnicode_DATA(text);
    int kind = PyUnicode_KIND(text), status;
    a->ngram_steps = 0;
    if (table_reset(&a->words, o->flags & WORDS ? n / 4 : 0) < 0 || table_reset(&a->lines, n / 64) < 0
        || table_reset(&a->paragraphs, n / 256) < 0)
        return -1;
    if (kind == PyUnicode_1BYTE_KIND)
        status = scan(data, PyUnicode_1BYTE_KIND, n, o, a, k, s);
    else if (kind == PyUnicode_2BYTE_KIND)
        status = scan(data, PyUnicode_2BYTE_KIND, n, o, a, k, s);
    else
        status = scan(data, PyUnicode_4BYTE_KIND, n, o, a, k, s);
    if (status < 0)
        return -1;
    if (!s->removed) { /* what stands behind the last kept line stays */
        s->open.end = (uint32_t)n;
        k->kept_line_breaks += s->breaks;
        s->out_break_chars += s->break_chars;
    }
    if (push_segment(s, a) < 0)
        return -1;
    k->kept_line_chars = s->out_chars - s->out_break_chars;
    return o->flags & WORDS && o->max_ngram > 1 ? count_ngrams(a, o, k) : 0;
}

/* The text without the removed lines, or None when it is all there. */
static PyObject *kept_text(PyObject *text, size_t n, const State *s, const Arena *a)
{
    int kind = PyUnicode_KIND(text);
    if (s->out_chars == n)
        Py_RETURN_NONE;
    char *buffer = PyMem_RawMalloc(s->out_chars * (size_t)kind + 1);
    if (!buffer)
        return PyErr_NoMemory();
    size_t at = 0;
    for (size_t i = 0; i < s->segments; i++) {
        const Segment *segment = (const Segment *)a->segments.items + i;
        for (uint32_t b = 0; b < segment->breaks; b++)
            PyUnicode_WRITE(kind, buffer, at++, '\n');
        size_t chars = segment->end - segment->start;
        const char *from = (const char *)PyUnicode_DATA(text) + segment->start * (size_t)kind;
        memcpy(buffer + at * (size_t)kind, from, chars * (size_t)kind);
        at += chars;
    }
    PyObject *kept = PyUnicode_FromKindAndData(kind, buffer, (Py_ssize_t)at);
    PyMem_RawFree(buffer);
    return kept;
}

/* -1 and a TypeError unless `lists` is a tuple of tuples of str. */
static int check_stop_words(PyObject *lists)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
        PyObject *list = PyTuple_GET_ITEM(lists, i);
        int good = PyTuple_Check(list);
        for (Py_ssize_t j = 0; good && j < PyTuple_GET_SIZE(list); j++) {
            PyObject *word = PyTuple_GET_ITEM(list, j);
            good = PyUnicode_Check(word) && PyUnicode_READY(word) == 0;
        }
        if (!good) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "stop_words: a tuple of tuples of str is needed");
            return -1;
        }
    }
    return 0;
}

/* The most words that the text has of one list; `lists` is a tuple of tuples of str. */
static uint64_t stop_words(PyObject *lists, Arena *a)
{
    uint64_t most = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
        PyObject *list = PyTuple_GET_ITEM(lists, i);
        uint64_t hits = 0;
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(list); j++) {
            PyObject *word = PyTuple_GET_ITEM(list, j);
            uint64_t hash = HASH_SEED;
            for (Py_ssize_t c = 0; c < PyUnicode_GET_LENGTH(word); c++)
                hash = (hash ^ PyUnicode_READ_CHAR(word, c)) * WORD_PRIME;
            hits += (uint64_t)table_has(&a->words, hash);
        }
        most = hits > most ? hits : most;
    }
    return most;
}

static void free_arena(Arena *a)
{
    Table *tables[] = {&a->words, &a->lines, &a->paragraphs, &a->ngrams};
    Vector *vectors[] = {&a->info, &a->ids, &a->positions, &a->ngram_ids, &a->counts, &a->segments};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        PyMem_RawFree(tables[i]->slots);
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
        PyMem_RawFree(vectors[i]->items);
    PyMem_RawFree(a);
}

static void give_back(Arena *a)
{
    size_t slots = a->words.allocated + a->lines.allocated + a->paragraphs.allocated + a->ngrams.allocated;
    size_t bytes = slots * sizeof(Slot) + a->ids.capacity * 12 + a->info.capacity * sizeof(Word)
                   + a->counts.capacity * 4 + a->segments.capacity * sizeof(Segment);
    if (spare || bytes > KEEP_BYTES)
        free_arena(a);
    else
        spare = a;
}

static PyTypeObject *Features;

static PyObject *measure(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *lists, *numbers[5], *features = NULL, *kept = NULL;
    int64_t max_ngram, short_line_chars, min_line_words, max_word_chars, flags;
    if (!PyArg_ParseTuple(args, "UO!OOOOO:measure", &text, &PyTuple_Type, &lists, &numbers[0], &numbers[1], &numbers[2],
                          &numbers[3], &numbers[4])
        || PyUnicode_READY(text) < 0 || read_integer(numbers[0], "max_ngram", 0, MAX_NGRAM, &max_ngram) < 0
        || read_integer(numbers[1], "short_line_chars", 0, PY_SSIZE_T_MAX, &short_line_chars) < 0
        || read_integer(numbers[2], "min_line_words", 0, PY_SSIZE_T_MAX, &min_line_words) < 0
        || read_integer(numbers[3], "max_word_chars", 0, PY_SSIZE_T_MAX, &max_word_chars) < 0
        || read_integer(numbers[4], "flags", 0, ALL_FLAGS, &flags) < 0 || check_stop_words(lists) < 0)
        return NULL;
    size_t n = (size_t)PyUnicode_GET_LENGTH(text);
    if (n >= SPACED)
        return PyErr_Format(PyExc_ValueError, "text: %zu characters given, fewer than 2**31 are allowed", n);
    Arena *a = spare ? spare : PyMem_RawCalloc(1, sizeof(Arena));
    spare = NULL;
    if (!a)
        return PyErr_NoMemory();
    Options o = {(size_t)max_ngram, (size_t)short_line_chars, (size_t)min_line_words, (size_t)max_word_chars,
                 (unsigned)flags};
    Counts k = {0};
    State s = {.paragraph_hash = HASH_SEED};
    int status;
    if (n > 1 << 16) {
        Py_BEGIN_ALLOW_THREADS
        status = run(text, n, &o, a, &k, &s);
        Py_END_ALLOW_THREADS
    } else {
        status = run(text, n, &o, a, &k, &s);
    }
    if (status < 0) {
        PyErr_NoMemory();
    } else if ((kept = kept_text(text, n, &s, a))) {
        k.stop_words = stop_words(lists, a);
        if ((features = as_counts(Features, &k, sizeof k))) {
            PyStructSequence_SET_ITEM(features, (Py_ssize_t)N_COUNTS, kept);
            kept = NULL;
        }
    }
    Py_XDECREF(kept);
    last_steps = a->words.steps + a->lines.steps + a->paragraphs.steps + a->ngram_steps;
    give_back(a);
    return features;
}

static PyObject *probe_steps(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromSize_t(last_steps);
}

#define DESCRIBE(name) {#name, NULL},
static PyStructSequence_Field FEATURE_FIELDS[] = {FIELDS(DESCRIBE){"text", NULL}, {NULL, NULL}};
static PyStructSequence_Desc FEATURES = {
    "transforms.native.heuristics.Features", NULL, FEATURE_FIELDS, (int)N_COUNTS + 1,
};

static PyMethodDef methods[] = {
    {"measure", measure, METH_VARARGS, "All counts of `text` that the heuristics compare; see heuristics.pyi."},
    {"probe_steps", probe_steps, METH_NOARGS,
     "probe_steps() -> int: slots that the last measure() of this process passed over in all its tables; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "heuristics", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_heuristics(void)
{
    PyObject *self = PyModule_Create(&module);
    if (!self || (!Features && !(Features = PyStructSequence_NewType(&FEATURES))) || fill_classes() < 0
        || draw_key(&slot_key) < 0 || PyModule_AddObjectRef(self, "Features", (PyObject *)Features) < 0
        || PyModule_AddIntMacro(self, WORDS) < 0 || PyModule_AddIntMacro(self, LINES) < 0
        || PyModule_AddIntMacro(self, PARAGRAPHS) < 0 || PyModule_AddIntMacro(self, NEED_TERMINAL) < 0
        || PyModule_AddIntMacro(self, NO_JAVASCRIPT) < 0 || PyModule_AddIntMacro(self, NO_POLICY) < 0
        || PyModule_AddIntMacro(self, C4_ENDS) < 0 || PyModule_AddIntMacro(self, UNSPLIT) < 0
        || PyModule_AddIntMacro(self, LONE_NGRAMS) < 0
        || PyModule_AddIntMacro(self, WINDOW_WORDS) < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    return self;
}
