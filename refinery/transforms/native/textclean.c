/* One pass over the buffer of a Python str: the cleaning of a text, its id, its size in UTF-8.
 *
 * clean(text, inner): drops what nobody sees, unifies line ends and spaces, strips line ends, keeps one blank line.
 * text_id(text): 16 bytes of BLAKE2b of " ".join(text.split()).encode().
 * utf8_size(text): the length of text.encode("utf-8", "surrogatepass").
 * has_surrogates(text): whether it has lone surrogates, so text.encode() raises.
 *
 * clean and text_id copy eight characters at a time up to the first that does not stay as it is: words are short, and
 * a branch at each space costs more than the characters.
 *
 * Cost: linear in time, and one output buffer of at most the size of the input (text_id: at most 3 or 4 bytes a code
 * point). Safety: nothing is written that was not read, so the output fits; arguments are checked at entry; tables
 * cover every code point of the widths that they are asked for. The GIL is released for long texts (a str's buffer
 * never changes). */
#include "kernel.h"

#include "blake2b.h"

enum { PLAIN = 0, SPACE = 1, TAB = 2, NEWLINE = 3, DROP = 4, MARK = 5 };

/* Most combining marks in a row, as in Unicode's Stream-Safe Text Format (UAX #15, section 13): the rest is dropped.
 * No language needs more, and sorting a longer run into canonical order costs quadratic time. */
#define MOST_MARKS 30

#define GIL_LIMIT 65536 /* code points; below it, giving up the GIL costs more than it brings */

/* What clean() makes of each code point of the first two planes; where str.split() splits. */
static uint8_t kinds[0x20000];
static uint8_t splits[0x10000];

/* What clean() does with a code point when it copies several at once. */
enum { COPIED = 0, BLANK = 1, END = 2, LOOKED_AT = 0x80 };
static uint8_t cleaned[0x20000];

#define EIGHT_ONES 0x0101010101010101u
#define EIGHT_HIGHS 0x8080808080808080u

static void mark(uint8_t *table, uint32_t first, uint32_t last, uint8_t value)
{
    for (uint32_t c = first; c <= last; c++)
        table[c] = value;
}

/* Combining marks as this Python's unicodedata has them (they fit its normalize). About 10 ms, once a process. */
static int mark_combining(void)
{
    PyObject *unicodedata = PyImport_ImportModule("unicodedata");
    PyObject *combining = unicodedata != NULL ? PyObject_GetAttrString(unicodedata, "combining") : NULL;
    Py_XDECREF(unicodedata);
    for (uint32_t c = 0x300; combining != NULL && c < 0x20000; c++) {
        PyObject *character = PyUnicode_FromOrdinal((int)c);
        PyObject *order = character != NULL ? PyObject_CallOneArg(combining, character) : NULL;
        long value = order != NULL ? PyLong_AsLong(order) : -1;
        Py_XDECREF(character);
        Py_XDECREF(order);
        if (value < 0)
            Py_CLEAR(combining);
        else if (value > 0)
            kinds[c] = MARK;
    }
    Py_XDECREF(combining);
    return combining != NULL ? 0 : -1;
}

static void fill_tables(void)
{
    mark(kinds, 0x00, 0x1F, DROP); /* C0 controls ... */
    kinds['\t'] = TAB;
    mark(kinds, 0x0A, 0x0D, NEWLINE); /* LF, VT, FF, CR */
    kinds[' '] = SPACE;
    mark(kinds, 0x7F, 0x9F, DROP); /* DEL and C1 controls ... */
    kinds[0x85] = NEWLINE;         /* ... but NEL ends a line */
    kinds[0xA0] = SPACE;
    kinds[0xAD] = DROP;             /* soft hyphen */
    kinds[0x061C] = DROP;           /* Arabic letter mark (bidi) */
    kinds[0x1680] = SPACE;
    mark(kinds, 0x2000, 0x200A, SPACE);
    kinds[0x200B] = DROP;               /* zero-width space; 200C and 200D join letters and emoji: they stay */
    mark(kinds, 0x200E, 0x200F, DROP);  /* bidi marks */
    mark(kinds, 0x2028, 0x2029, NEWLINE);
    mark(kinds, 0x202A, 0x202E, DROP);  /* bidi embeddings and overrides */
    kinds[0x202F] = SPACE;
    kinds[0x205F] = SPACE;
    mark(kinds, 0x2060, 0x206F, DROP);  /* word joiner, invisible operators, bidi isolates, deprecated controls */
    kinds[0x3000] = SPACE;
    mark(kinds, 0xD800, 0xDFFF, DROP);  /* lone surrogates: no coder or file takes them */
    mark(kinds, 0xE000, 0xF8FF, DROP);  /* private use: on the web, the glyphs of icon fonts */
    mark(kinds, 0xFDD0, 0xFDEF, DROP);  /* noncharacters */
    kinds[0xFEFF] = DROP;               /* byte order mark */
    mark(kinds, 0xFFF9, 0xFFFC, DROP);  /* interlinear annotation, object replacement */
    mark(kinds, 0xFFFE, 0xFFFF, DROP);
    mark(kinds, 0x1FFFE, 0x1FFFF, DROP);

    for (uint32_t c = 0; c < 0x10000; c++)
        splits[c] = (uint8_t)Py_UNICODE_ISSPACE(c);

    for (uint32_t c = 0; c < 0x20000; c++)
        cleaned[c] = c == ' ' ? BLANK : c == '\n' ? END : kinds[c] == PLAIN ? COPIED : LOOKED_AT;
}

/* What is done with eight characters, a byte each: the first is the lowest. */
#define EIGHT(TABLE, in)                                                                                               \
    ((uint64_t)TABLE((in)[0]) | (uint64_t)TABLE((in)[1]) << 8 | (uint64_t)TABLE((in)[2]) << 16                         \
     | (uint64_t)TABLE((in)[3]) << 24 | (uint64_t)TABLE((in)[4]) << 32 | (uint64_t)TABLE((in)[5]) << 40                \
     | (uint64_t)TABLE((in)[6]) << 48 | (uint64_t)TABLE((in)[7]) << 56)

/* A bit for each of eight characters that clean() must look at. A line's end is one where a blank or another end
 * precedes it; with `inner` every line's end is one, and every blank behind a blank. follows: whether a blank or a
 * line's end is before the eight. */
INLINE uint64_t stops_of(uint64_t eight, int inner, int follows)
{
    uint64_t blanks = eight & EIGHT_ONES, ends = eight >> 1 & EIGHT_ONES, stops = eight >> 7 & EIGHT_ONES;
    uint64_t behind = (blanks | ends) << 8 | (uint64_t)follows;
    return stops | (inner ? ends | (blanks & behind) : ends & behind);
}

static inline int kind_of(uint32_t c)
{
    if (c < 0x20000)
        return kinds[c];
    if ((c & 0xFFFE) == 0xFFFE || c >= 0xF0000)
        return DROP; /* noncharacters, private use planes */
    return c >= 0xE0000 && c <= 0xE007F ? DROP : PLAIN; /* tags: invisible ASCII, a known way to smuggle text */
}

/* Returns the length written to out (room for n); *changed tells whether it differs from the input.
 * Whatever is not copied looks at the last characters written. */
#define DEFINE_CLEAN(NAME, CHAR, KIND, STAYS)                                                                          \
    static Py_ssize_t NAME(const CHAR *in, Py_ssize_t n, CHAR *out, int inner, int *changed)                           \
    {                                                                                                                  \
        const CHAR *end = in + n;                                                                                      \
        CHAR *o = out, *marks_end = NULL; /* where the current run of marks ends in out, and its length */             \
        int marks = 0, indent = 1, touched = 0; /* indent: nothing but spaces so far in this line */                   \
        while (in < end) {                                                                                             \
            while (o > out && end - in >= 8) { /* there is room for eight: no more is written than was read */         \
                uint64_t eight = EIGHT(STAYS, in);                                                                     \
                uint64_t stops = stops_of(eight, inner, o[-1] == ' ' || o[-1] == '\t' || o[-1] == '\n');               \
                int copied = stops ? __builtin_ctzll(stops) >> 3 : 8;                                                  \
                memcpy(o, in, 8 * sizeof(CHAR));                                                                       \
                if (stops) {                                                                                           \
                    in += copied;                                                                                      \
                    o += copied;                                                                                       \
                    indent &= copied <= (int)(eight & BLANK); /* of several, one is no blank */                        \
                    break;                                                                                             \
                }                                                                                                      \
                in += 8;                                                                                               \
                o += 8;                                                                                                \
                indent = 0;                                                                                            \
            }                                                                                                          \
            if (in == end)                                                                                             \
                break;                                                                                                 \
            uint32_t c = *in++;                                                                                        \
            int kind = KIND(c);                                                                                        \
            if (kind == PLAIN) {                                                                                       \
                *o++ = (CHAR)c;                                                                                        \
                indent = 0;                                                                                            \
                continue;                                                                                              \
            }                                                                                                          \
            if (kind == SPACE || kind == TAB) {                                                                        \
                CHAR blank = kind == TAB ? '\t' : ' ';                                                                 \
                touched |= blank != c;                                                                                 \
                if (inner && !indent && (o[-1] == ' ' || o[-1] == '\t')) {                                             \
                    if (kind == TAB)                                                                                   \
                        o[-1] = '\t'; /* a run with a tab in it is a cell border */                                    \
                } else if (o > out) {                                                                                  \
                    *o++ = blank;                                                                                      \
                }                                                                                                      \
            } else if (kind == NEWLINE) {                                                                              \
                touched |= c != '\n';                                                                                  \
                if (c == '\r' && in < end && *in == '\n')                                                              \
                    in++;                                                                                              \
                while (o > out && (o[-1] == ' ' || o[-1] == '\t'))                                                     \
                    o--;                                                                                               \
                if (o > out && !(o[-1] == '\n' && o[-2] == '\n'))                                                      \
                    *o++ = '\n';                                                                                       \
                indent = 1;                                                                                            \
            } else if (kind == MARK) {                                                                                 \
                marks = o == marks_end ? marks + 1 : 1;                                                                \
                if (marks <= MOST_MARKS)                                                                               \
                    *o++ = (CHAR)c;                                                                                    \
                marks_end = o;                                                                                         \
                indent = 0;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        while (o > out && (o[-1] == ' ' || o[-1] == '\t' || o[-1] == '\n'))                                            \
            o--;                                                                                                       \
        *changed = touched || o - out != n;                                                                            \
        return o - out;                                                                                                \
    }

#define SMALL_KIND(c) kinds[c]
#define WIDE_KIND(c) kind_of(c)
#define SMALL_STAYS(c) cleaned[c]
#define WIDE_STAYS(c) ((c) < 0x20000 ? cleaned[c] : LOOKED_AT)
DEFINE_CLEAN(clean_1, Py_UCS1, SMALL_KIND, SMALL_STAYS)
DEFINE_CLEAN(clean_2, Py_UCS2, SMALL_KIND, SMALL_STAYS)
DEFINE_CLEAN(clean_4, Py_UCS4, WIDE_KIND, WIDE_STAYS)

static PyObject *clean(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *text, *result;
    int inner, changed = 0;
    if (!PyArg_ParseTuple(args, "Up:clean", &text, &inner))
        return NULL;
    if (PyUnicode_READY(text) < 0)
        return NULL;
    Py_ssize_t n = PyUnicode_GET_LENGTH(text), size;
    int width = (int)PyUnicode_KIND(text);
    const void *in = PyUnicode_DATA(text);
    if (n == 0)
        return Py_NewRef(text);

    void *out = PyMem_Malloc((size_t)n * (size_t)width); /* cannot overflow: the input has that size */
    if (out == NULL)
        return PyErr_NoMemory();
    PyThreadState *saved = n > GIL_LIMIT ? PyEval_SaveThread() : NULL;
    if (width == 1)
        size = clean_1(in, n, out, inner, &changed);
    else if (width == 2)
        size = clean_2(in, n, out, inner, &changed);
    else
        size = clean_4(in, n, out, inner, &changed);
    if (saved != NULL)
        PyEval_RestoreThread(saved);

    if (!changed)
        result = PyUnicode_CheckExact(text) ? Py_NewRef(text) : PyUnicode_FromObject(text);
    else
        result = PyUnicode_FromKindAndData(width, out, size);
    PyMem_Free(out);
    return result;
}

static inline int splits_at(uint32_t c)
{
    return c < 0x10000 && splits[c];
}

/* Eight characters as bytes, of which those beyond ASCII have the high bit: the first is the lowest. */
INLINE uint64_t eight_1(const Py_UCS1 *in)
{
    uint64_t eight;
    memcpy(&eight, in, 8);
    return eight;
}

#define ASCII_OR_HIGH(c) ((c) < 0x80 ? (uint8_t)(c) : 0x80)
INLINE uint64_t eight_2(const Py_UCS2 *in)
{
    return EIGHT(ASCII_OR_HIGH, in);
}

INLINE uint64_t eight_4(const Py_UCS4 *in)
{
    return EIGHT(ASCII_OR_HIGH, in);
}

/* The high bit of each of eight bytes of ASCII that is `c`. */
INLINE uint64_t equal_to(uint64_t eight, uint8_t c)
{
    uint64_t other = eight ^ EIGHT_ONES * c;
    return ~(((other & ~EIGHT_HIGHS) + ~EIGHT_HIGHS) | other) & EIGHT_HIGHS;
}

/* Returns the length written to out (room for n characters in UTF-8, and a byte), or -1 at a lone surrogate. */
#define DEFINE_COLLAPSE(NAME, CHAR, LOAD)                                                                              \
    static Py_ssize_t NAME(const CHAR *in, Py_ssize_t n, uint8_t *out)                                                 \
    {                                                                                                                  \
        const CHAR *end = in + n;                                                                                      \
        uint8_t *o = out;                                                                                              \
        uint64_t blank = 1; /* whether a blank would be one too many: at the start, or behind another */               \
        while (in < end) {                                                                                             \
            while (end - in >= 8) { /* there is room for eight, as in clean() */                                       \
                uint64_t eight = LOAD(in);                                                                             \
                eight ^= (equal_to(eight, '\n') >> 7) * ('\n' ^ ' ');                                                  \
                uint64_t blanks = equal_to(eight, ' ') >> 7;                                                           \
                uint64_t stops = (~((eight | EIGHT_HIGHS) - EIGHT_ONES * ' ') | eight) & EIGHT_HIGHS;                  \
                stops |= blanks & (blanks << 8 | blank);                                                               \
                memcpy(o, &eight, 8);                                                                                  \
                if (stops) {                                                                                           \
                    int copied = __builtin_ctzll(stops) >> 3;                                                          \
                    in += copied;                                                                                      \
                    o += copied;                                                                                       \
                    blank = copied ? blanks >> (8 * copied - 8) & 1 : blank;                                           \
                    break;                                                                                             \
                }                                                                                                      \
                in += 8;                                                                                               \
                o += 8;                                                                                                \
                blank = blanks >> 56;                                                                                  \
            }                                                                                                          \
            do { /* one character, and all up to two of ASCII */                                                       \
                if (in == end)                                                                                         \
                    break;                                                                                             \
                uint32_t c = *in++;                                                                                    \
                if (c < 0x800) { /* without a branch: alphabets have blanks at every word's end */                     \
                    uint64_t split = splits[c], wide = c >= 0x80;                                                      \
                    uint8_t first = (uint8_t)(wide ? 0xC0 | c >> 6 : c);                                               \
                    o[0] = split ? ' ' : first;                                                                        \
                    o[1] = (uint8_t)(0x80 | (c & 0x3F));                                                               \
                    o += (1 + wide) * !split + (split & !blank);                                                       \
                    blank = split;                                                                                     \
                    continue;                                                                                          \
                }                                                                                                      \
                if (splits_at(c)) {                                                                                    \
                    *o = ' ';                                                                                          \
                    o += !blank;                                                                                       \
                    blank = 1;                                                                                         \
                    continue;                                                                                          \
                }                                                                                                      \
                blank = 0;                                                                                             \
                if (c < 0x10000) {                                                                                     \
                    if ((c & 0xF800) == 0xD800)                                                                        \
                        return -1;                                                                                     \
                    *o++ = (uint8_t)(0xE0 | c >> 12);                                                                  \
                    *o++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));                                                          \
                    *o++ = (uint8_t)(0x80 | (c & 0x3F));                                                               \
                } else {                                                                                               \
                    *o++ = (uint8_t)(0xF0 | c >> 18);                                                                  \
                    *o++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));                                                         \
                    *o++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));                                                          \
                    *o++ = (uint8_t)(0x80 | (c & 0x3F));                                                               \
                }                                                                                                      \
            } while (end - in > 1 && ((in[0] | in[1]) >= 0x80 || (blank && splits[in[0]])));                           \
        }                                                                                                              \
        return o - out - (o > out && blank);                                                                           \
    }

DEFINE_COLLAPSE(collapse_1, Py_UCS1, eight_1)
DEFINE_COLLAPSE(collapse_2, Py_UCS2, eight_2)
DEFINE_COLLAPSE(collapse_4, Py_UCS4, eight_4)

#define ID_BYTES 16

static PyObject *text_id(PyObject *self, PyObject *text)
{
    (void)self;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "text_id() takes a str, not %.100s", Py_TYPE(text)->tp_name);
    if (PyUnicode_READY(text) < 0)
        return NULL;
    Py_ssize_t n = PyUnicode_GET_LENGTH(text), size;
    int width = (int)PyUnicode_KIND(text);
    const void *in = PyUnicode_DATA(text);
    Py_ssize_t most = PyUnicode_IS_ASCII(text) ? 1 : width == 1 ? 2 : width == 2 ? 3 : 4; /* bytes a code point */
    uint8_t *out = n < PY_SSIZE_T_MAX / most ? PyMem_RawMalloc((size_t)(n * most) + 1) : NULL;
    if (out == NULL)
        return PyErr_NoMemory();

    uint8_t digest[ID_BYTES];
    PyThreadState *saved = n > GIL_LIMIT ? PyEval_SaveThread() : NULL;
    if (width == 1)
        size = collapse_1(in, n, out);
    else if (width == 2)
        size = collapse_2(in, n, out);
    else
        size = collapse_4(in, n, out);
    if (size >= 0)
        blake2b(digest, ID_BYTES, out, (uint64_t)size);
    if (saved != NULL)
        PyEval_RestoreThread(saved);

    PyMem_RawFree(out);
    if (size >= 0)
        return PyBytes_FromStringAndSize((const char *)digest, ID_BYTES);
    Py_XDECREF(PyUnicode_AsUTF8String(text)); /* Python names the surrogate and its place */
    return NULL;
}

/* Bytes beyond one a character, in UTF-8; sums of 32 bits are faster, and hold for so many characters. */
#define SUMMED (1 << 28)
#define DEFINE_BEYOND(NAME, CHAR, MORE)                                                                                \
    VECTORISED static Py_ssize_t NAME(const CHAR *in, Py_ssize_t n)                                                    \
    {                                                                                                                  \
        Py_ssize_t total = 0;                                                                                          \
        for (Py_ssize_t first = 0; first < n; first += SUMMED) {                                                       \
            Py_ssize_t count = n - first < SUMMED ? n - first : SUMMED;                                                \
            uint32_t sum = 0;                                                                                          \
            for (Py_ssize_t i = 0; i < count; i++) {                                                                   \
                uint32_t c = in[first + i];                                                                            \
                sum += MORE;                                                                                           \
            }                                                                                                          \
            total += sum;                                                                                              \
        }                                                                                                              \
        return total;                                                                                                  \
    }

DEFINE_BEYOND(beyond_1, Py_UCS1, (c >= 0x80))
DEFINE_BEYOND(beyond_2, Py_UCS2, (c >= 0x80) + (uint32_t)(c >= 0x800))
DEFINE_BEYOND(beyond_4, Py_UCS4, (c >= 0x80) + (uint32_t)(c >= 0x800) + (uint32_t)(c >= 0x10000))

static PyObject *utf8_size(PyObject *self, PyObject *text)
{
    (void)self;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "utf8_size() takes a str, not %.100s", Py_TYPE(text)->tp_name);
    if (PyUnicode_READY(text) < 0)
        return NULL;
    Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    int width = (int)PyUnicode_KIND(text);
    const void *in = PyUnicode_DATA(text);
    if (!PyUnicode_IS_ASCII(text))
        n += width == 1 ? beyond_1(in, n) : width == 2 ? beyond_2(in, n) : beyond_4(in, n);
    return PyLong_FromSsize_t(n);
}

#define DEFINE_SURROGATES(NAME, CHAR)                                                                                  \
    VECTORISED static int NAME(const CHAR *in, Py_ssize_t n)                                                           \
    {                                                                                                                  \
        uint32_t found = 0;                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            found |= (in[i] & ~0x7FFu) == 0xD800;                                                                      \
        return (int)found;                                                                                             \
    }

DEFINE_SURROGATES(surrogates_2, Py_UCS2)
DEFINE_SURROGATES(surrogates_4, Py_UCS4)

static PyObject *has_surrogates(PyObject *self, PyObject *text)
{
    (void)self;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "has_surrogates() takes a str, not %.100s", Py_TYPE(text)->tp_name);
    if (PyUnicode_READY(text) < 0)
        return NULL;
    Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    int width = (int)PyUnicode_KIND(text);
    const void *in = PyUnicode_DATA(text);
    return PyBool_FromLong(width == 1 ? 0 : width == 2 ? surrogates_2(in, n) : surrogates_4(in, n));
}

static PyMethodDef methods[] = {
    {"clean", clean, METH_VARARGS, "clean(text, inner) -> str: see transforms.clean_text."},
    {"text_id", text_id, METH_O, "text_id(text) -> bytes: see transforms.core.document.document_id."},
    {"utf8_size", utf8_size, METH_O, "utf8_size(text) -> int: len(text.encode('utf-8', 'surrogatepass'))."},
    {"has_surrogates", has_surrogates, METH_O, "has_surrogates(text) -> bool: whether text.encode() raises."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "textclean", "Cleaning of texts.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_textclean(void)
{
    if (mark_combining() < 0)
        return NULL;
    fill_tables();
    return PyModule_Create(&module);
}
