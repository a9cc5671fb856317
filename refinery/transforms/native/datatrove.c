/* What the quality rules compare, counted as datatrove counts it, where its units are not those of heuristics.c.
 *
 *   quality(text) -> Quality
 *   repeated_pieces(text) -> RepeatedPieces
 *   kept_lines(text, short_line_chars) -> KeptLines
 *   stripped_lines(text) -> str
 *
 * transforms/filter/counting/datatrove.py says what each is for. Lines and paragraphs are exact: equal hashes are
 * compared (include/counting_spans.h).
 *
 * Cost: linear in the characters for any text. Memory beside the text: up to 70 bytes per distinct line or paragraph.
 * Safety: arguments are checked at entry; a str's characters never change, so long texts are read without the GIL. */

#include "counting_spans.h"
#include "counts_object.h"

#define KEEP_BYTES ((size_t)8 << 20) /* a larger table is freed after its document */
#define MAX_CHARS ((size_t)1 << 31)

/* clang-format off */
#define QUALITY_FIELDS(X) X(symbol_words) X(symbol_word_chars) X(lines) X(bullet_lines)
#define PIECE_FIELDS(X) \
    X(lines) X(duplicate_lines) X(duplicate_line_chars) \
    X(paragraphs) X(duplicate_paragraphs) X(duplicate_paragraph_chars)
#define LINE_FIELDS(X) \
    X(kept_lines) X(kept_terminal_lines) X(kept_short_lines) X(kept_duplicate_line_chars) X(kept_line_breaks) \
    X(kept_line_chars)
/* clang-format on */
#define DECLARE(name) uint64_t name;
typedef struct { QUALITY_FIELDS(DECLARE) } Quality;
typedef struct { PIECE_FIELDS(DECLARE) } RepeatedPieces;
typedef struct { LINE_FIELDS(DECLARE) } KeptLines;

/* One table waits here between documents. It is taken and put back under the GIL; a concurrent call makes its own. */
static Spans *spare;

INLINE uint32_t read_at(const void *data, const int kind, size_t i)
{
    return PyUnicode_READ(kind, data, i);
}

INLINE size_t skip_space(const void *data, const int kind, size_t i, size_t n)
{
    while (i < n && (class_of(read_at(data, kind, i)) & SPACE))
        i++;
    return i;
}

/* Words between white space that have no letter or digit, and are not punctuation alone. Lines as str.splitlines. */
INLINE void scan_quality(const void *data, const int kind, size_t n, Quality *out)
{
    Quality k = {0};
    unsigned blank = 1; /* white space alone since the line's begin */
    size_t i = 0, line = 0;
    while (i < n) {
        const uint32_t c = read_at(data, kind, i);
        unsigned class = class_of(c), seen = 0, common = ~0u;
        if (class & SPACE) {
            i++;
            if (!(class & BREAK))
                continue;
            i += c == '\r' && i < n && read_at(data, kind, i) == '\n';
            k.lines++;
            line = i;
            blank = 1;
            continue;
        }
        const size_t start = i;
        k.bullet_lines += blank & ((class & DASH_OR_DOT) != 0);
        blank = 0;
        do {
            seen |= class;
            common &= class;
            class = ++i < n ? class_of(read_at(data, kind, i)) : SPACE;
        } while (!(class & SPACE));
        const unsigned counts = !(seen & ALNUM) & !(common & PUNCTUATION);
        k.symbol_words += counts;
        k.symbol_word_chars += counts ? i - start : 0;
    }
    k.lines += line < n;
    *out = k;
}

typedef struct { uint64_t pieces, again, again_chars; } Tally; /* again: equal to one before them */

INLINE int add_piece(const void *data, const int kind, size_t n, size_t start, size_t end, Spans *s, Tally *t)
{
    const size_t used = s->used;
    if (span_id(s, data, kind, n, start, end - start) < 0)
        return -1;
    t->pieces++;
    t->again += s->used == used;
    t->again_chars += s->used == used ? end - start : 0;
    return 0;
}

/* The pieces of text[start:end] between runs of at least so many line breaks. */
INLINE int tally_pieces(const void *data, const int kind, size_t n, size_t start, size_t end, size_t breaks, Spans *s,
                        Tally *t)
{
    *t = (Tally){0};
    if (spans_reset(s, n / (64 * breaks)) < 0)
        return -1;
    for (size_t i = start; i < end;) {
        const size_t run = i;
        while (i < end && read_at(data, kind, i) == '\n')
            i++;
        if (i - run >= breaks) {
            if (add_piece(data, kind, n, start, run, s, t) < 0)
                return -1;
            start = i;
        }
        while (i < end && read_at(data, kind, i) != '\n')
            i++;
    }
    return add_piece(data, kind, n, start, end, s, t);
}

INLINE int scan_pieces(const void *data, const int kind, size_t n, Spans *s, RepeatedPieces *k)
{
    Tally lines, paragraphs;
    const size_t start = skip_space(data, kind, 0, n);
    size_t end = n;
    while (end > start && (class_of(read_at(data, kind, end - 1)) & SPACE))
        end--;
    if (tally_pieces(data, kind, n, 0, n, 1, s, &lines) < 0
        || tally_pieces(data, kind, n, start, end, 2, s, &paragraphs) < 0)
        return -1;
    *k = (RepeatedPieces){lines.pieces,      lines.again,      lines.again_chars,
                          paragraphs.pieces, paragraphs.again, paragraphs.again_chars};
    return 0;
}

/* Lines between "\n" that are not blank. */
INLINE int scan_lines(const void *data, const int kind, size_t n, uint64_t short_chars, Spans *s, KeptLines *k)
{
    Tally lines = {0};
    *k = (KeptLines){0};
    if (spans_reset(s, n / 64) < 0)
        return -1;
    for (size_t start = 0, end; start <= n; start = end + 1) {
        for (end = start; end < n && read_at(data, kind, end) != '\n';)
            end++;
        k->kept_line_breaks += end < n;
        if (skip_space(data, kind, start, end) == end)
            continue;
        k->kept_terminal_lines += (class_of(read_at(data, kind, end - 1)) & TERMINAL) != 0;
        k->kept_short_lines += end - start <= short_chars;
        if (add_piece(data, kind, n, start, end, s, &lines) < 0)
            return -1;
    }
    k->kept_lines = lines.pieces;
    k->kept_duplicate_line_chars = lines.again_chars;
    k->kept_line_chars = n - k->kept_line_breaks;
    return 0;
}

/* Writes lines without the white space around them, and without the blank ones, each with "\n"; their characters. */
INLINE size_t strip_lines(const void *data, const int kind, size_t n, void *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        i = skip_space(data, kind, i, n);
        size_t end = i, start = i; /* behind the last character that is no white space */
        for (unsigned class = 0; i < n && !(class & BREAK); i++) {
            class = class_of(read_at(data, kind, i));
            end = class & SPACE ? end : i + 1;
        }
        if (end == start)
            continue;
        memcpy((char *)out + at * (size_t)kind, (const char *)data + start * (size_t)kind, (end - start) * (size_t)kind);
        at += end - start;
        PyUnicode_WRITE(kind, out, at++, '\n');
    }
    return at;
}

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

/* WORK with a constant KIND, so that every loop is compiled for it; long texts without the GIL. */
#define BY_KIND(WORK) \
    do { \
        PyThreadState *thread = n > 1 << 16 ? PyEval_SaveThread() : NULL; \
        if (kind == PyUnicode_1BYTE_KIND) \
            WORK(PyUnicode_1BYTE_KIND); \
        else if (kind == PyUnicode_2BYTE_KIND) \
            WORK(PyUnicode_2BYTE_KIND); \
        else \
            WORK(PyUnicode_4BYTE_KIND); \
        if (thread) \
            PyEval_RestoreThread(thread); \
    } while (0)

static Spans *take_spans(void)
{
    Spans *s = spare ? spare : PyMem_RawCalloc(1, sizeof(Spans));
    spare = NULL;
    if (!s)
        PyErr_NoMemory();
    return s;
}

static void give_back(Spans *s)
{
    if (!spare && s->slots.capacity * sizeof(SpanSlot) + s->spans.capacity * sizeof(Span) <= KEEP_BYTES) {
        spare = s;
        return;
    }
    PyMem_RawFree(s->slots.items);
    PyMem_RawFree(s->spans.items);
    PyMem_RawFree(s);
}

static PyTypeObject *QualityType, *PiecesType, *LinesType;

static PyObject *quality(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text;
    size_t n;
    if (!PyArg_ParseTuple(args, "U:quality", &text) || check_text(text, &n) < 0)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    const int kind = (int)PyUnicode_KIND(text);
    Quality k;
#define QUALITY(KIND) scan_quality(data, KIND, n, &k)
    BY_KIND(QUALITY);
    return as_counts(QualityType, &k, sizeof k);
}

static PyObject *repeated_pieces(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text;
    size_t n;
    if (!PyArg_ParseTuple(args, "U:repeated_pieces", &text) || check_text(text, &n) < 0)
        return NULL;
    Spans *s = take_spans();
    if (!s)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    const int kind = (int)PyUnicode_KIND(text);
    int status;
    RepeatedPieces k;
#define PIECES(KIND) status = scan_pieces(data, KIND, n, s, &k)
    BY_KIND(PIECES);
    give_back(s);
    return status < 0 ? PyErr_NoMemory() : as_counts(PiecesType, &k, sizeof k);
}

static PyObject *kept_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *number;
    int64_t short_chars;
    size_t n;
    if (!PyArg_ParseTuple(args, "UO:kept_lines", &text, &number)
        || read_integer(number, "short_line_chars", 0, PY_SSIZE_T_MAX, &short_chars) < 0 || check_text(text, &n) < 0)
        return NULL;
    Spans *s = take_spans();
    if (!s)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    const int kind = (int)PyUnicode_KIND(text);
    int status;
    KeptLines k;
#define LINES(KIND) status = scan_lines(data, KIND, n, (uint64_t)short_chars, s, &k)
    BY_KIND(LINES);
    give_back(s);
    return status < 0 ? PyErr_NoMemory() : as_counts(LinesType, &k, sizeof k);
}

static PyObject *stripped_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text;
    size_t n, at;
    if (!PyArg_ParseTuple(args, "U:stripped_lines", &text) || check_text(text, &n) < 0)
        return NULL;
    const void *data = PyUnicode_DATA(text);
    const int kind = (int)PyUnicode_KIND(text);
    void *out = PyMem_RawMalloc((n + 1) * (size_t)kind);
    if (!out)
        return PyErr_NoMemory();
#define STRIP(KIND) at = strip_lines(data, KIND, n, out)
    BY_KIND(STRIP);
    PyObject *found = PyUnicode_FromKindAndData(kind, out, (Py_ssize_t)(at ? at - 1 : 0)); /* without the last "\n" */
    PyMem_RawFree(out);
    return found;
}

#define DESCRIBE(name) {#name, NULL},
static PyStructSequence_Field QUALITY_ENTRIES[] = {QUALITY_FIELDS(DESCRIBE){NULL, NULL}};
static PyStructSequence_Field PIECE_ENTRIES[] = {PIECE_FIELDS(DESCRIBE){NULL, NULL}};
static PyStructSequence_Field LINE_ENTRIES[] = {LINE_FIELDS(DESCRIBE){NULL, NULL}};

/* Makes the type of a result, unless it is made, and offers it. */
static int add_type(PyObject *self, PyTypeObject **type, const char *name, const char *path,
                    PyStructSequence_Field *fields, size_t size)
{
    PyStructSequence_Desc about = {path, NULL, fields, (int)(size / sizeof(uint64_t))};
    if (!*type && !(*type = PyStructSequence_NewType(&about)))
        return -1;
    return PyModule_AddObjectRef(self, name, (PyObject *)*type);
}
#define ADD(TYPE, NAME, FIELDS, COUNTS) \
    add_type(self, &TYPE, NAME, "transforms.native.datatrove." NAME, FIELDS, sizeof(COUNTS))

static PyMethodDef methods[] = {
    {"quality", quality, METH_VARARGS, "Counts for Gopher's quality rules; see datatrove.pyi."},
    {"repeated_pieces", repeated_pieces, METH_VARARGS, "Counts of lines and paragraphs; see datatrove.pyi."},
    {"kept_lines", kept_lines, METH_VARARGS, "Counts of lines for FineWeb's rules; see datatrove.pyi."},
    {"stripped_lines", stripped_lines, METH_VARARGS, "Lines without white space around them; see datatrove.pyi."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "datatrove", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_datatrove(void)
{
    PyObject *self = PyModule_Create(&module);
    if (!self || draw_key(&slot_key) < 0 || draw_key(&span_key) < 0
        || ADD(QualityType, "Quality", QUALITY_ENTRIES, Quality) < 0
        || ADD(PiecesType, "RepeatedPieces", PIECE_ENTRIES, RepeatedPieces) < 0
        || ADD(LinesType, "KeptLines", LINE_ENTRIES, KeptLines) < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    return self;
}
