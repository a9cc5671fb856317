/* How many attributes a tag of a page may have at most, whatever parser reads it.
 *
 * Parsers that keep a tag's attributes in a list compare each new one with all before it: a page that is one tag of a
 * million attributes takes them hours. Where tags begin is a matter of the whole tree (inside comments, scripts and
 * titles there are none), so a tag is supposed to begin at every '<' with a letter behind it, and all of them are read
 * at once: of each state of the HTML standard's tokenizer inside a tag (13.2.5.8 and 13.2.5.32 to 13.2.5.40) the run
 * with most attributes is kept. Two runs in one state go on alike, so no other one can overtake it: the largest number
 * that is ever reached is exact, as a maximum over all places where a tag may begin.
 *
 * Cost: linear, nine numbers per byte; where no tag is open, memchr. Memory: none. The GIL is released. */
#include "kernel.h"
#include "page_bytes.h"

enum { NAME, BEFORE, ATTRIBUTE, AFTER, EQUALS, DOUBLE, SINGLE, UNQUOTED, QUOTED, STATES };

#define NONE INT64_MIN

INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

INLINE int64_t more(int64_t attributes) { return attributes == NONE ? NONE : attributes + 1; }

/* One byte of all open tags. */
INLINE void step(int64_t *s, uint8_t c)
{
    const int64_t begun = more(larger(s[BEFORE], larger(s[AFTER], s[QUOTED])));
    switch (c) {
    case '>': /* ends all tags but those that are inside quotes */
        for (int i = 0; i < STATES; i++)
            s[i] = i == DOUBLE || i == SINGLE ? s[i] : NONE;
        return;
    case '\t': case '\n': case '\f': case '\r': case ' ':
        s[BEFORE] = larger(larger(s[BEFORE], s[NAME]), larger(s[UNQUOTED], s[QUOTED]));
        s[AFTER] = larger(s[AFTER], s[ATTRIBUTE]);
        s[NAME] = s[UNQUOTED] = s[QUOTED] = s[ATTRIBUTE] = NONE;
        return;
    case '/':
        s[BEFORE] = larger(larger(larger(s[BEFORE], s[NAME]), larger(s[ATTRIBUTE], s[AFTER])), s[QUOTED]);
        s[UNQUOTED] = larger(s[UNQUOTED], s[EQUALS]);
        s[NAME] = s[ATTRIBUTE] = s[AFTER] = s[QUOTED] = s[EQUALS] = NONE;
        return;
    case '=': { /* where a name is to begin, it is its first character */
        const int64_t valued = larger(s[ATTRIBUTE], s[AFTER]);
        s[ATTRIBUTE] = more(larger(s[BEFORE], s[QUOTED]));
        s[UNQUOTED] = larger(s[UNQUOTED], s[EQUALS]);
        s[EQUALS] = valued;
        s[BEFORE] = s[QUOTED] = s[AFTER] = NONE;
        return;
    }
    case '"': case '\'': {
        const int quote = c == '"' ? DOUBLE : SINGLE;
        const int64_t closed = s[quote];
        s[quote] = s[EQUALS];
        s[EQUALS] = NONE;
        s[ATTRIBUTE] = larger(s[ATTRIBUTE], begun);
        s[BEFORE] = s[AFTER] = NONE;
        s[QUOTED] = closed;
        return;
    }
    default:
        s[ATTRIBUTE] = larger(s[ATTRIBUTE], begun);
        s[UNQUOTED] = larger(s[UNQUOTED], s[EQUALS]);
        s[BEFORE] = s[AFTER] = s[QUOTED] = s[EQUALS] = NONE;
    }
}

static int64_t most_of(const uint8_t *at, const uint8_t *end)
{
    int64_t most = 0, s[STATES];
    for (int i = 0; i < STATES; i++)
        s[i] = NONE;
    while (at < end) {
        int64_t open = NONE;
        for (int i = 0; i < STATES; i++)
            open = larger(open, s[i]);
        if (open == NONE && !(at = memchr(at, '<', (size_t)(end - at))))
            break;
        most = larger(most, open);
        step(s, *at);
        if (*at == '<' && at + 1 < end && (uint8_t)((at[1] | 32) - 'a') < 26)
            s[NAME] = larger(s[NAME], 0); /* its letter follows, and stays in NAME */
        at++;
    }
    for (int i = 0; i < STATES; i++)
        most = larger(most, s[i]);
    return most;
}

static PyObject *most(PyObject *module, PyObject *html)
{
    (void)module;
    Py_ssize_t size;
    const uint8_t *bytes = page_bytes(html, "html", &size);
    if (!bytes)
        return NULL;
    int64_t found;
    Py_BEGIN_ALLOW_THREADS
    found = most_of(bytes, bytes + size);
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(found);
}

static PyMethodDef methods[] = {
    {"most", most, METH_O, "most(html) -> attributes of the richest tag, wherever one may begin."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "attributes", "The most attributes of a tag.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_attributes(void) { return PyModuleDef_Init(&module); }
