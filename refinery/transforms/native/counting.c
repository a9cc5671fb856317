/* What the quality rules compare, counted as the code of other projects does: DCLM's and dolma's units.
 *
 *   quality(text, stop_words, units) -> Quality
 *   repeated_pieces(text, units) -> RepeatedPieces
 *   repeated_ngrams(text, most, units) -> (share, ...)
 *   c4_lines(text, ends_alone, min_words) -> str
 *   words_of(text) -> [word, ...]
 *
 * transforms/filter/counting/occurrences.py says whose units these are. Words, lines and n-grams are exact: equal
 * hashes are compared (include/counting_spans.h), and an n-gram is the pair of its (n-1)-grams.
 *
 * Cost: linear in the characters for any text: tables stay at most half full, and their slots and hashes have keys that
 * no text knows. Only the lengths of words of 256 characters and more are sorted, for the median. Memory beside the
 * text: 12 bytes per word, and up to 70 per distinct word and per distinct n-gram of one n. Safety: arguments are
 * checked at entry; a str's characters never change, so long texts are read without the GIL. */

#include "counting_repeats.h"
#include "counts_object.h"

#define KEEP_BYTES ((size_t)8 << 20) /* a larger workspace is freed after its document */
#define MAX_CHARS ((size_t)1 << 31)

typedef struct { QualityState quality; Repeats repeats; } Workspace;

/* One workspace waits here between documents. It is taken and put back under the GIL; a concurrent call makes its own. */
static Workspace *spare;

static size_t last_steps; /* of the last call's tables, for tests; set under the GIL */

static Workspace *take_workspace(void)
{
    Workspace *w = spare ? spare : PyMem_RawCalloc(1, sizeof(Workspace));
    spare = NULL;
    if (!w)
        PyErr_NoMemory();
    return w;
}

static void give_back(Workspace *w)
{
    QualityState *q = &w->quality;
    Repeats *r = &w->repeats;
    const struct { Vector *vector; size_t size; } vectors[] = {
        {&q->stop.words, sizeof(StopWord)}, {&q->stop.slots, 4}, {&q->odd, 4}, {&q->lengths, 4},
        {&r->pieces.spans, sizeof(Span)}, {&r->pieces.slots, sizeof(SpanSlot)}, {&r->words.spans, sizeof(Span)},
        {&r->words.slots, sizeof(SpanSlot)}, {&r->ids, 4}, {&r->positions, 4},
        {&r->ngram_ids, 4}, {&r->counts, 4},
    };
    size_t bytes = r->ngrams.allocated * sizeof(Slot);
    last_steps = r->pieces.steps + r->words.steps + r->ngram_steps;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
        bytes += vectors[i].vector->capacity * vectors[i].size;
    if (!spare && bytes <= KEEP_BYTES) {
        spare = w;
        return;
    }
    PyMem_RawFree(r->ngrams.slots);
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
        PyMem_RawFree(vectors[i].vector->items);
    PyMem_RawFree(w);
}

/* -1 and an exception unless the kernel can read the text; its length in *n. */
static int check_text(PyObject *text, size_t *n)
{
    if (PyUnicode_READY(text) < 0)
        return -1;
    *n = (size_t)PyUnicode_GET_LENGTH(text);
    if (*n < MAX_CHARS)
        return make_classes();
    PyErr_Format(PyExc_ValueError, "text: %zu characters given, fewer than 2**31 are allowed", *n);
    return -1;
}

/* WORK with a constant KIND and UNITS, so that every loop is compiled for them; long texts without the GIL. */
#define BY_UNITS(KIND, WORK) (units == DCLM ? WORK(KIND, DCLM) : WORK(KIND, DOLMA))
#define BY_KIND(WORK) \
    (kind == PyUnicode_1BYTE_KIND   ? BY_UNITS(PyUnicode_1BYTE_KIND, WORK) \
     : kind == PyUnicode_2BYTE_KIND ? BY_UNITS(PyUnicode_2BYTE_KIND, WORK) \
                                    : BY_UNITS(PyUnicode_4BYTE_KIND, WORK))
#define LET_OTHERS_RUN(WORK) \
    do { \
        PyThreadState *thread = n > 1 << 16 ? PyEval_SaveThread() : NULL; \
        WORK; \
        if (thread) \
            PyEval_RestoreThread(thread); \
    } while (0)

static int run_quality(const void *data, int kind, size_t n, int units, QualityState *s, Quality *k)
{
    s->odd_count = s->lengths_count = s->dots = s->dots_end = s->spaced_end = 0;
    memset(s->short_lengths, 0, sizeof s->short_lengths);
#define SCAN(KIND, UNITS) scan_quality(data, KIND, n, UNITS, s, k)
    return BY_KIND(SCAN);
}

static int run_pieces(const void *data, int kind, size_t n, int units, Repeats *r, double *shares)
{
#define PIECES(KIND, UNITS) repeated_pieces(data, KIND, n, UNITS, r, shares)
    return BY_KIND(PIECES);
}

static int run_ngrams(const void *data, int kind, size_t n, int units, size_t most, Repeats *r, Share *shares)
{
#define NUMBER(KIND, UNITS) number_words(data, KIND, n, UNITS, r)
    if (BY_KIND(NUMBER) < 0)
        return -1;
    return units == DCLM ? count_ngrams(r, most, DCLM, shares) : count_ngrams(r, most, DOLMA, shares);
}

static PyTypeObject *QualityType, *PiecesType;

static PyObject *quality(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *lists, *number, *found = NULL;
    int64_t units;
    size_t n;
    if (!PyArg_ParseTuple(args, "UO!O:quality", &text, &PyTuple_Type, &lists, &number)
        || read_integer(number, "units", DCLM, DOLMA, &units) < 0 || check_text(text, &n) < 0)
        return NULL;
    Workspace *w = take_workspace();
    if (!w)
        return NULL;
    QualityState *s = &w->quality;
    Quality k;
    if (make_stop_words(lists, &s->stop) == 0) {
        const void *data = PyUnicode_DATA(text);
        int kind = (int)PyUnicode_KIND(text), status;
        LET_OTHERS_RUN(status = run_quality(data, kind, n, (int)units, s, &k));
        if (status < 0)
            PyErr_NoMemory();
        else if (meet_odd_words(text, s) == 0) {
            k.stop_words = most_stop_words(lists, &s->stop);
            found = as_counts(QualityType, &k, sizeof k);
        }
    }
    give_back(w);
    return found;
}

static PyObject *repeated(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *number, *found = NULL;
    int64_t units;
    size_t n;
    if (!PyArg_ParseTuple(args, "UO:repeated_pieces", &text, &number)
        || read_integer(number, "units", DCLM, DOLMA, &units) < 0 || check_text(text, &n) < 0)
        return NULL;
    Workspace *w = take_workspace();
    if (!w)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    int kind = (int)PyUnicode_KIND(text), status;
    double shares[4];
    w->repeats.words.steps = w->repeats.ngram_steps = 0;
    LET_OTHERS_RUN(status = run_pieces(data, kind, n, (int)units, &w->repeats, shares));
    if (status < 0)
        PyErr_NoMemory();
    else
        found = PyStructSequence_New(PiecesType);
    for (size_t i = 0; found && i < 4; i++) {
        PyObject *share = PyFloat_FromDouble(shares[i]);
        if (share)
            PyStructSequence_SET_ITEM(found, (Py_ssize_t)i, share);
        else
            Py_CLEAR(found);
    }
    give_back(w);
    return found;
}

static PyObject *repeated_ngrams(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *numbers[2], *found = NULL;
    int64_t most, units;
    size_t n;
    if (!PyArg_ParseTuple(args, "UOO:repeated_ngrams", &text, &numbers[0], &numbers[1])
        || read_integer(numbers[0], "most", 2, MAX_NGRAM, &most) < 0
        || read_integer(numbers[1], "units", DCLM, DOLMA, &units) < 0 || check_text(text, &n) < 0)
        return NULL;
    Workspace *w = take_workspace();
    if (!w)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    int kind = (int)PyUnicode_KIND(text), status;
    Share shares[MAX_NGRAM - 1];
    w->repeats.pieces.steps = 0;
    LET_OTHERS_RUN(status = run_ngrams(data, kind, n, (int)units, (size_t)most, &w->repeats, shares));
    if (status < 0)
        PyErr_NoMemory();
    else
        found = PyTuple_New((Py_ssize_t)most - 1);
    for (int64_t i = 0; found && i < most - 1; i++) {
        PyObject *share = PyFloat_FromDouble(ratio(shares[i]));
        if (share)
            PyTuple_SET_ITEM(found, (Py_ssize_t)i, share);
        else
            Py_CLEAR(found);
    }
    give_back(w);
    return found;
}

/* Whether a line of `chars` characters has so many words, and ends, without white space, in one of dolma's marks. */
static int keeps_line(const void *data, int kind, size_t start, size_t end, int ends_alone, uint64_t min_words)
{
    uint64_t words = 0;
    uint32_t last = 0;
    for (size_t at = start, length; (length = next_spaced_word(data, kind, end, &at)); at += length) {
        words++;
        last = PyUnicode_READ(kind, data, at + length - 1);
    }
    return words >= min_words && (!ends_alone || last == '.' || last == '?' || last == '!' || last == '"');
}

static PyObject *c4_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *number, *found = NULL;
    int ends_alone;
    int64_t min_words;
    size_t n, at = 0;
    if (!PyArg_ParseTuple(args, "UpO:c4_lines", &text, &ends_alone, &number)
        || read_integer(number, "min_words", 0, PY_SSIZE_T_MAX, &min_words) < 0 || check_text(text, &n) < 0)
        return NULL;
    const int kind = (int)PyUnicode_KIND(text);
    const char *data = PyUnicode_DATA(text);
    const size_t size = (size_t)kind;
    char *kept = PyMem_RawMalloc((n + 1) * size);
    if (!kept)
        return PyErr_NoMemory();
    LET_OTHERS_RUN(for (size_t start = 0, end; start <= n; start = end + 1) {
        end = next_break(data, kind, start, n);
        if (!keeps_line(data, kind, start, end, ends_alone, (uint64_t)min_words))
            continue;
        memcpy(kept + at * size, data + start * size, (end - start) * size);
        at += end - start;
        PyUnicode_WRITE(kind, kept, at++, '\n'); /* the last one goes */
    });
    if (at == n + 1)
        found = Py_NewRef(text);
    else
        found = PyUnicode_FromKindAndData(kind, kept, (Py_ssize_t)(at ? at - 1 : 0));
    PyMem_RawFree(kept);
    return found;
}

static PyObject *words_of(PyObject *Py_UNUSED(module), PyObject *text)
{
    size_t n;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "text: str is needed, %.100s given", Py_TYPE(text)->tp_name);
    PyObject *found = check_text(text, &n) == 0 ? PyList_New(0) : NULL;
    for (size_t at = 0, length; found; at += length) {
        length = next_word(PyUnicode_DATA(text), (int)PyUnicode_KIND(text), n, &at);
        if (!length)
            break;
        PyObject *word = PyUnicode_Substring(text, (Py_ssize_t)at, (Py_ssize_t)(at + length));
        if (!word || PyList_Append(found, word) < 0)
            Py_CLEAR(found);
        Py_XDECREF(word);
    }
    return found;
}

static PyObject *probe_steps(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromSize_t(last_steps);
}

static PyObject *probe_hash_bits(PyObject *Py_UNUSED(module), PyObject *number)
{
    int64_t bits;
    if (read_integer(number, "bits", 0, 64, &bits) < 0)
        return NULL;
    hash_bits = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    Py_RETURN_NONE;
}

#define DESCRIBE(name) {#name, NULL},
static PyStructSequence_Field QUALITY_ENTRIES[] = {QUALITY_FIELDS(DESCRIBE){NULL, NULL}};
static PyStructSequence_Desc QUALITY = {"transforms.native.counting.Quality", NULL, QUALITY_ENTRIES, (int)N_QUALITY};
static PyStructSequence_Field PIECES_ENTRIES[] = {
    {"duplicate_lines", NULL},      {"duplicate_paragraphs", NULL},      {"duplicate_line_chars", NULL},
    {"duplicate_paragraph_chars", NULL}, {NULL, NULL},
};
static PyStructSequence_Desc PIECES_DESC = {"transforms.native.counting.RepeatedPieces", NULL, PIECES_ENTRIES, 4};

static PyMethodDef methods[] = {
    {"quality", quality, METH_VARARGS, "Counts for Gopher's quality rules; see counting.pyi."},
    {"repeated_pieces", repeated, METH_VARARGS, "Shares of repeated lines and paragraphs; see counting.pyi."},
    {"repeated_ngrams", repeated_ngrams, METH_VARARGS, "Shares of n-grams from 2 to `most` words; see counting.pyi."},
    {"c4_lines", c4_lines, METH_VARARGS, "The lines that dolma's rules for ends and for words leave."},
    {"words_of", words_of, METH_O, "Words by the boundaries of Unicode's annex 29, as DCLM's n-grams have them."},
    {"probe_steps", probe_steps, METH_NOARGS,
     "probe_steps() -> int: slots that the last call in this process passed over in all its tables; for tests."},
    {"probe_hash_bits", probe_hash_bits, METH_O,
     "probe_hash_bits(bits): from now on look at so many bits of hashes, so that more of them are equal; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "counting", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_counting(void)
{
    PyObject *self = PyModule_Create(&module);
    if (!self || (!QualityType && !(QualityType = PyStructSequence_NewType(&QUALITY)))
        || (!PiecesType && !(PiecesType = PyStructSequence_NewType(&PIECES_DESC))) || draw_key(&slot_key) < 0
        || draw_key(&span_key) < 0 || PyModule_AddObjectRef(self, "Quality", (PyObject *)QualityType) < 0
        || PyModule_AddObjectRef(self, "RepeatedPieces", (PyObject *)PiecesType) < 0
        || PyModule_AddIntMacro(self, DCLM) < 0 || PyModule_AddIntMacro(self, DOLMA) < 0
        || PyModule_AddIntMacro(self, MAX_NGRAM) < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    return self;
}
