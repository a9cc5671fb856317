/* What the counting of other projects asks of a character: white space, letters, and Unicode's classes of words.
 *
 * The table is made once, by the first call that needs it, from the interpreter's own Unicode tables, so that the
 * kernel and str agree in every version of Python. Planes 2 and 3 have ideographs alone, plane 14 variation selectors;
 * tests hold class_of against str and unicodedata for every code point. */

#include "heuristics_tables.h"
#include "scripts.h"
#include "terminals.h"

enum { /* classes of a character */
    SPACE = 1,         /* str.isspace */
    ALPHA = 2,         /* str.isalpha */
    ALNUM = 4,         /* str.isalnum */
    LETTER = 8,        /* of annex 29, see next_word */
    DIGIT = 16,
    MARK = 32,
    SINGLE = 64,       /* a word by itself */
    KATAKANA = 128,
    UNDERSCORE = 256,
    LETTER_JOINT = 512, /* joins letters, DIGIT_JOINT digits */
    DIGIT_JOINT = 1024,
    ASCII_GAP = 2048,  /* ASCII white space and "\0" */
    SIGN = 4096,       /* DCLM looks at each of them: '#', '.', the ellipsis, "\0" */
    SYMBOL = 8192,     /* dolma's: '#' and the ellipsis */
    BULLET = 16384,    /* DCLM's; ASCII_BULLET: dolma's */
    ODD_CASE = 32768,  /* str.lower depends on what is beside it, or makes two characters */
    BREAK = 65536,     /* str.splitlines ends a line there */
    TERMINAL = 131072, /* ends a sentence */
    PUNCTUATION = 262144, /* datatrove's, with the terminals: words of these alone are none */
    DASH_OR_DOT = 524288  /* datatrove's bullets */
};
#define RUN (LETTER | DIGIT | MARK | UNDERSCORE)
#define ELLIPSIS 0x2026u

#define N_CLASSES 0x20000u
static uint32_t classes[N_CLASSES];
static int classes_are_made;

static const uint32_t KATAKANA_RANGES[][2] = {{0x30A1, 0x30FA}, {0x30FC, 0x30FF}, {0x31F0, 0x31FF}, {0xFF66, 0xFF9D}};
static const struct { uint32_t chars[8], class; } SETS[] = {
    {{'_'}, UNDERSCORE},
    {{'\'', 0x2019, '.', ':', 0xB7, 0x2027}, LETTER_JOINT},
    {{'\'', 0x2019, '.', ',', ';', 0x60C, 0x66C}, DIGIT_JOINT},
    {{' ', '\n', '\r', '\t', '\v', '\f'}, ASCII_GAP},
    {{'#', '.', ELLIPSIS}, SIGN},
    {{'#', ELLIPSIS}, SYMBOL},
    {{0x25CF, 0x2022, '*', '-'}, BULLET},
    {{0x3A3, 0x130}, ODD_CASE},
    {{0x2022, '-'}, DASH_OR_DOT},
};
/* datatrove's punctuation, without the marks that end a sentence. */
static const uint32_t PUNCTUATIONS[][2] = {
    {0x21, 0x2F},     {0x3A, 0x40},     {0x5B, 0x60},     {0x7B, 0x7E},     {0xAB, 0xAB},     {0xB4, 0xB4},
    {0xBB, 0xBB},     {0x2013, 0x2014}, {0x2019, 0x2019}, {0x201C, 0x201E}, {0x2026, 0x2026}, {0x2236, 0x2236},
    {0x2501, 0x2501}, {0x25BA, 0x25BA}, {0x3001, 0x3002}, {0x3008, 0x300D}, {0x3010, 0x3011}, {0xFF01, 0xFF01},
    {0xFF05, 0xFF05}, {0xFF08, 0xFF09}, {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E}, {0xFF11, 0xFF11}, {0xFF1A, 0xFF1B},
    {0xFF1F, 0xFF1F}, {0xFF5E, 0xFF5E},
};

INLINE unsigned class_of(uint32_t c)
{
    if (c < N_CLASSES)
        return classes[c];
    if (c <= 0x3FFFF)
        return Py_UNICODE_ISALPHA(c) ? ALPHA | ALNUM | SINGLE : 0;
    return c >= 0xE0100 && c <= 0xE01EF ? MARK : 0;
}

INLINE uint32_t lower_of(uint32_t c)
{
    if (c < 128)
        return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    return Py_UNICODE_TOLOWER(c);
}

/* The class of annex 29; `category`: unicodedata.category. -1 and an exception if that fails. */
static int word_class(uint32_t c, PyObject *category, int is_unspaced)
{
    for (size_t i = 0; i < sizeof(KATAKANA_RANGES) / sizeof(*KATAKANA_RANGES); i++)
        if (c >= KATAKANA_RANGES[i][0] && c <= KATAKANA_RANGES[i][1])
            return KATAKANA;
    if (Py_UNICODE_ISDECIMAL(c))
        return DIGIT;
    if (Py_UNICODE_ISALNUM(c))
        return Py_UNICODE_ISALPHA(c) && !is_unspaced ? LETTER : SINGLE;
    if (c < 128 || (c >= 0xD800 && c <= 0xF8FF)) /* ASCII, surrogates and private use have no marks */
        return 0;
    PyObject *character = PyUnicode_FromOrdinal((int)c);
    PyObject *name = character ? PyObject_CallOneArg(category, character) : NULL;
    Py_XDECREF(character);
    if (!name)
        return -1;
    const int is_mark = PyUnicode_READ_CHAR(name, 0) == 'M' || PyUnicode_CompareWithASCIIString(name, "Cf") == 0;
    Py_DECREF(name);
    return is_mark ? MARK : 0;
}

CHECK void mark_ranges(const uint32_t (*ranges)[2], size_t count, uint32_t class)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = ranges[i][0]; c <= ranges[i][1]; c++)
            classes[c] |= class;
}

/* Makes the table, unless it is there; under the GIL. -1 and an exception if it cannot. */
CHECK int make_classes(void)
{
    if (classes_are_made)
        return 0;
    PyObject *unicodedata = PyImport_ImportModule("unicodedata");
    PyObject *category = unicodedata ? PyObject_GetAttrString(unicodedata, "category") : NULL;
    Py_XDECREF(unicodedata);
    size_t range = 0;
    for (uint32_t c = 0; category && c < N_CLASSES; c++) {
        while (range < UNSPACED_RANGES && c > UNSPACED[range][1])
            range++;
        int class = word_class(c, category, range < UNSPACED_RANGES && c >= UNSPACED[range][0]);
        if (class < 0)
            Py_CLEAR(category);
        else
            classes[c] = (uint32_t)class | (Py_UNICODE_ISSPACE(c) ? SPACE : 0) | (Py_UNICODE_ISALPHA(c) ? ALPHA : 0)
                         | (Py_UNICODE_ISALNUM(c) ? ALNUM : 0) | (Py_UNICODE_ISLINEBREAK(c) ? BREAK : 0);
    }
    if (!category)
        return -1;
    Py_DECREF(category);
    for (size_t i = 0; i < sizeof(SETS) / sizeof(*SETS); i++)
        for (size_t j = 0; j < 8 && SETS[i].chars[j]; j++)
            classes[SETS[i].chars[j]] |= SETS[i].class;
    mark_ranges(TERMINALS, TERMINAL_RANGES, TERMINAL | PUNCTUATION);
    mark_ranges(PUNCTUATIONS, sizeof PUNCTUATIONS / sizeof *PUNCTUATIONS, PUNCTUATION);
    classes[0] |= ASCII_GAP | SIGN;
    classes_are_made = 1;
    return 0;
}

/* The next word by the boundaries of Unicode's annex 29 from *at on, without what does not begin with a letter or a
 * digit: its length, its begin in *at; 0 at the end.
 *
 * Runs of letters, digits, marks and underscores; a joint between letters, or between digits, parts no word; a letter
 * of a script written without spaces is a word, with its marks, but katakana, which make runs. */
INLINE size_t next_word(const void *data, const int kind, size_t n, size_t *at)
{
    for (size_t i = *at; i < n;) {
        const size_t start = i;
        unsigned class = class_of(PyUnicode_READ(kind, data, i++)), before = class;
        if (class & (LETTER | DIGIT | UNDERSCORE)) {
            const unsigned first = class;
            for (;;) {
                while (i < n && ((class = class_of(PyUnicode_READ(kind, data, i))) & RUN)) {
                    before = class;
                    i++;
                }
                if (i + 1 >= n || !(class & (LETTER_JOINT | DIGIT_JOINT)))
                    break;
                const unsigned after = class_of(PyUnicode_READ(kind, data, i + 1));
                if (!((class & LETTER_JOINT) && (before & (LETTER | MARK)) && (after & LETTER))
                    && !((class & DIGIT_JOINT) && (before & DIGIT) && (after & DIGIT)))
                    break;
                i++;
            }
            if (first & UNDERSCORE)
                continue;
        } else if (class & (KATAKANA | SINGLE)) {
            const unsigned inside = class & KATAKANA ? KATAKANA | MARK | UNDERSCORE : MARK;
            while (i < n && (class_of(PyUnicode_READ(kind, data, i)) & inside))
                i++;
        } else {
            continue;
        }
        *at = start;
        return i - start;
    }
    return 0;
}
