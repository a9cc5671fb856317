/* What the scan asks of a character, and the phrases it looks for. Include after heuristics_tables.h. */

#include "scripts.h"
#include "terminals.h"

enum { /* classes of a character */
    SPACE = 1, BREAK = 2, ALPHA = 4, NUMERIC = 8, LOWER = 16, MARK = 32, SPACELESS = 64, PUNCT = 128, TERMINAL = 256,
    CLOSER = 512, BULLET = 1024, CODE = 2048, TRIGGER = 4096
};
enum { JAVASCRIPT = 1, POLICY = 2, LOREM_IPSUM = 4, LONG_WORD = 8, IS_BULLET = 16, BRACKET = 32 }; /* marks of a line */

#define N_CLASSES 0x20000u
static uint16_t classes[N_CLASSES];

static const struct { uint32_t chars[12]; uint16_t class; } SETS[] = {
    {{'"', '\'', ')', ']', '}', 0x2019, 0x201D, 0xBB}, CLOSER},
    {{0x300D, 0x300F, 0x3011, 0x300B, 0x3009, 0xFF09}, CLOSER},
    {{'-', '*', 0x2022, 0x2023, 0x25E6, 0x25AA, 0x25CF, 0x2043, 0xB7}, BULLET},
    {{'{', '}', '(', ')', '<', '>', '=', ';', '&', '+', '\\', '$'}, CODE}, /* without what Markdown uses */
    {{'j', 'J', 'k', 'K', 'm', 'M', 'v', 'V'}, TRIGGER},
    {{0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF}, MARK}, /* zero width: Khmer and Thai pages have them between words */
};
/* C4's phrases (Raffel et al. 2020; the policy list is of its released code), each found by its rarest letter. */
static const struct { const char *phrase; uint8_t length, at, mark; } PHRASES[] = {
    {"javascript", 10, 0, JAVASCRIPT}, {"lorem ipsum", 11, 4, LOREM_IPSUM}, {"terms of use", 12, 3, POLICY},
    {"privacy policy", 14, 3, POLICY}, {"cookie policy", 13, 3, POLICY},    {"uses cookies", 12, 8, POLICY},
    {"use of cookies", 14, 10, POLICY}, {"use cookies", 11, 7, POLICY},
};

INLINE unsigned class_of(uint32_t c)
{
    if (c < N_CLASSES)
        return classes[c];
    if (c <= 0x3FFFF)
        return Py_UNICODE_ISALPHA(c) ? ALPHA | SPACELESS : 0; /* planes 2 and 3 hold Han */
    return c >= 0xE0100 && c <= 0xE01EF ? MARK : 0;           /* variation selectors */
}

/* The marks of the phrases that have the trigger letter at `i` in their place; ASCII letters match without case. */
static unsigned match_phrases(const void *data, int kind, size_t line, size_t i, size_t n)
{
    unsigned marks = 0;
    char trigger = (char)(PyUnicode_READ(kind, data, i) | 0x20);
    for (size_t p = 0; p < sizeof(PHRASES) / sizeof(*PHRASES); p++) {
        size_t at = PHRASES[p].at, length = PHRASES[p].length, k = 0;
        if (PHRASES[p].phrase[at] != trigger || i - line < at || n - (i - at) < length)
            continue;
        for (; k < length; k++) {
            uint32_t c = PyUnicode_READ(kind, data, i - at + k);
            if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != (uint32_t)PHRASES[p].phrase[k])
                break;
        }
        if (k == length)
            marks |= PHRASES[p].mark;
    }
    return marks;
}

/* Classes of the characters of planes 0 and 1, after the interpreter's Unicode tables (str.isalpha and the like). */
static int fill_classes(void)
{
    PyObject *unicodedata = PyImport_ImportModule("unicodedata");
    if (!unicodedata)
        return -1;
    for (uint32_t c = 0; c < N_CLASSES; c++) {
        unsigned class = Py_UNICODE_ISSPACE(c) ? SPACE : 0;
        class |= Py_UNICODE_ISLINEBREAK(c) ? BREAK : 0;
        class |= Py_UNICODE_ISALPHA(c) ? ALPHA : 0;
        class |= Py_UNICODE_ISDECIMAL(c) || Py_UNICODE_ISDIGIT(c) || Py_UNICODE_ISNUMERIC(c) ? NUMERIC : 0;
        class |= Py_UNICODE_ISLOWER(c) ? LOWER : 0;
        if (!(class & (SPACE | ALPHA | NUMERIC)) && Py_UNICODE_ISPRINTABLE(c)) {
            PyObject *category = PyObject_CallMethod(unicodedata, "category", "C", (int)c);
            if (!category) {
                Py_DECREF(unicodedata);
                return -1;
            }
            Py_UCS4 major = PyUnicode_READ_CHAR(category, 0);
            class |= major == 'M' ? MARK : major == 'P' || major == 'S' ? PUNCT : 0;
            Py_DECREF(category);
        }
        for (size_t i = 0; (class & ALPHA) && i < UNSPACED_RANGES; i++)
            class |= c >= UNSPACED[i][0] && c <= UNSPACED[i][1] ? SPACELESS : 0;
        classes[c] = (uint16_t)class;
    }
    Py_DECREF(unicodedata);
    for (size_t i = 0; i < TERMINAL_RANGES; i++)
        for (uint32_t c = TERMINALS[i][0]; c <= TERMINALS[i][1]; c++)
            classes[c] |= TERMINAL;
    for (size_t i = 0; i < sizeof(SETS) / sizeof(*SETS); i++)
        for (size_t j = 0; j < 12 && SETS[i].chars[j]; j++)
            classes[SETS[i].chars[j]] |= SETS[i].class;
    return 0;
}
