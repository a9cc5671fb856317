/* What parsing a page would cost, from one pass over its markup: depth, elements, attributes.
 *
 * HTML parsers and extractors take quadratic time, or run out of stack or memory, on pages made for it: 100,000 nested
 * <div>, a tag with 100,000 attributes, unclosed <font> elements that are opened again in each later paragraph. This
 * scanner follows the tokenizer and the stack of open elements of the HTML standard (section 13.2) closely enough that
 * what it reports is never far below the truth; where a rule would need the whole tree builder, it counts too much.
 * Its own cost is bounded: it stops when a limit is passed, so each tag costs at most max_depth steps.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "htmlscan_names.h"
#include "htmlscan_tokens.h"

static uint64_t K_A, K_NOBR, K_P, K_LI, K_DD, K_DT, K_TD, K_TH, K_TR, K_TABLE, K_TEMPLATE, K_FORM, K_BUTTON, K_OPTION,
    K_OPTGROUP, K_RT, K_RP, K_SELECT, K_PLAINTEXT, K_DIV, K_ADDRESS, K_OL, K_UL, K_TITLE, K_BR, K_RUBY, K_FRAMESET, K_FONT,
    K_MATH, K_HTML, K_ANNOTATION_XML;

static uint64_t named(const char *name)
{
    return key_of((const uint8_t *)name, strlen(name));
}

static void fill_tables(void)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        size_t slot = slot_of(named(KNOWN[i].name));
        slot_keys[slot] = named(KNOWN[i].name);
        slot_flags[slot] = KNOWN[i].flags;
    }
    K_A = named("a"), K_NOBR = named("nobr"), K_P = named("p"), K_LI = named("li"), K_DD = named("dd");
    K_DT = named("dt"), K_TD = named("td"), K_TH = named("th"), K_TR = named("tr"), K_TABLE = named("table");
    K_TEMPLATE = named("template"), K_FORM = named("form"), K_BUTTON = named("button"), K_OPTION = named("option");
    K_OPTGROUP = named("optgroup"), K_RT = named("rt"), K_RP = named("rp"), K_SELECT = named("select");
    K_PLAINTEXT = named("plaintext"), K_DIV = named("div"), K_ADDRESS = named("address"), K_OL = named("ol");
    K_UL = named("ul"), K_TITLE = named("title"), K_BR = named("br"), K_RUBY = named("ruby");
    K_FRAMESET = named("frameset"), K_FONT = named("font");
    K_MATH = named("math"), K_HTML = named("html"), K_ANNOTATION_XML = named("annotation-xml");
}

typedef struct {
    uint64_t key, attributes; /* name; hash of the raw attributes of a formatting element */
    uint32_t flags;
    uint8_t listed;  /* in the standard's list of active formatting elements */
    uint8_t waiting; /* closed with its block, to be opened again by the next text or inline element */
    uint8_t foreign; /* 1: svg or math and below, 2: HTML inside such */
} Open;

/* Extractors look at the text below each element, so text costs its depth. An element costs about 100 bytes of text
 * (resiliparse 2.0.1: 1.4 ns per byte and level, 150 ns per element and level). */
#define STEPS_PER_ELEMENT 100.0

typedef struct {
    Open *stack, *spare; /* both for max_depth + 2 entries */
    Py_ssize_t size, deepest, elements, most_attributes;
    double steps; /* sum over elements and bytes of text of the depth they are at, see STEPS_PER_ELEMENT */
    Py_ssize_t foreign, selects, templates; /* how many of them are open (foreign: also framesets ever seen) */
    Py_ssize_t waiting;                     /* how many entries are */
    int wary;                               /* HTML or not is unsure: nothing is taken for closed without an end tag */
    Py_ssize_t framesets;                   /* ever seen */
} State;

static void count(State *s, const Open *open, int by)
{
    s->foreign += open->foreign == 1 ? by : 0;
    s->selects += open->key == K_SELECT && !open->foreign ? by : 0;
    s->waiting += open->waiting ? by : 0;
    s->templates += open->key == K_TEMPLATE && !open->foreign ? by : 0;
}

static int is_marker(const Open *open)
{
    return (open->flags & MARKER) && !open->foreign;
}

/* Close entry `from` and all above. Formatting elements above it stay, waiting; those above a marker are forgotten. */
static void pop_to(State *s, Py_ssize_t from)
{
    Py_ssize_t marker = s->size, kept = from;
    for (Py_ssize_t i = from; i < s->size; i++) {
        count(s, &s->stack[i], -1);
        if (marker == s->size && is_marker(&s->stack[i]))
            marker = i;
    }
    for (Py_ssize_t i = from; i < marker; i++)
        if (s->stack[i].listed) {
            s->stack[kept] = s->stack[i];
            s->stack[kept].foreign = 0;
            s->stack[kept].waiting = 1;
            count(s, &s->stack[kept++], 1);
        }
    s->size = kept;
}

/* What text and inline elements do first: open the waiting formatting elements again, back to the last marker. This is
 * how a few unclosed elements and many paragraphs make a tree of quadratic size. */
static void reopen(State *s)
{
    Py_ssize_t from = s->size, kept, moved = 0;
    if (s->waiting == 0)
        return;
    while (from > 0 && !is_marker(&s->stack[from - 1]))
        from--;
    kept = from;
    for (Py_ssize_t i = from; i < s->size; i++)
        if (s->stack[i].waiting)
            s->spare[moved++] = s->stack[i];
        else
            s->stack[kept++] = s->stack[i];
    for (Py_ssize_t i = 0; i < moved; i++) {
        s->stack[kept] = s->spare[i];
        s->stack[kept++].waiting = 0;
        s->elements++;
        s->steps += (double)kept * STEPS_PER_ELEMENT;
    }
    s->waiting -= moved;
}

/* Whether the characters from p on are inserted as text: blanks between the parts of a table are not. */
static int reopens(const State *s, const uint8_t *p, const uint8_t *end)
{
    Py_ssize_t top = s->size - 1;
    while (top >= 0 && s->stack[top].waiting)
        top--;
    if (top < 0 || !(s->stack[top].flags & TABLE) || is_marker(&s->stack[top]))
        return p < end;
    while (p < end && blank(*p))
        p++;
    return p < end;
}

static void take_out(State *s, Py_ssize_t at)
{
    count(s, &s->stack[at], -1);
    memmove(s->stack + at, s->stack + at + 1, (size_t)(s->size - at - 1) * sizeof(Open));
    s->size--;
}

/* The highest open element named `key`, no further down than the first with one of `stops`; -1 when there is none. */
static Py_ssize_t find(const State *s, uint64_t key, uint32_t stops)
{
    for (Py_ssize_t i = s->size - 1; i >= 0; i--) {
        if (s->stack[i].key == key && !s->stack[i].foreign)
            return i;
        if ((s->stack[i].flags & stops) || s->stack[i].foreign == 2)
            return -1;
    }
    return -1;
}

static Py_ssize_t find_in_table(const State *s, uint64_t key, uint64_t other)
{
    for (Py_ssize_t i = s->size - 1; i >= 0; i--) {
        if ((s->stack[i].key == key || s->stack[i].key == other) && !s->stack[i].foreign)
            return i;
        if (s->stack[i].key == K_TABLE || s->stack[i].key == K_TEMPLATE || s->stack[i].foreign)
            return -1;
        if (s->stack[i].key == K_SELECT && key != K_TABLE) /* parsers differ: better too deep than too shallow */
            return -1;
    }
    return -1;
}

static int open_is(const State *s, uint64_t key, uint64_t other) /* the innermost open element; size > 0 */
{
    const Open *top = &s->stack[s->size - 1];
    return top->key == key || top->key == other;
}

static void close_found(State *s, Py_ssize_t at)
{
    if (at >= 0)
        pop_to(s, at);
}

/* What a start tag closes before it opens its element. Only where the standard certainly closes. */
static void close_implied(State *s, uint64_t key, uint32_t flags)
{
    Py_ssize_t at;
    if (key == K_LI || key == K_DD || key == K_DT) {
        for (at = s->size - 1; at >= 0; at--) {
            uint64_t open = s->stack[at].key;
            if (key == K_LI ? open == K_LI : open == K_DD || open == K_DT) {
                pop_to(s, at);
                break;
            }
            if ((s->stack[at].flags & (SPECIAL | SCOPE)) && open != K_ADDRESS && open != K_DIV && open != K_P)
                break;
            if (s->stack[at].foreign)
                break;
        }
    }
    if (flags & CLOSES_P) {
        for (at = s->size - 1; at >= 0; at--) {
            if (s->stack[at].key == K_P) {
                pop_to(s, at);
                break;
            }
            if ((s->stack[at].flags & SCOPE) || s->stack[at].key == K_BUTTON || s->stack[at].foreign == 2)
                break;
        }
    }
    if (s->selects && (key == K_OPTION || key == K_OPTGROUP))
        while (s->size > 0 && (open_is(s, K_P, K_LI) || open_is(s, K_DD, K_DT) || open_is(s, K_RP, K_RT)))
            pop_to(s, s->size - 1);
    if (s->size > 0) {
        const Open *top = &s->stack[s->size - 1];
        if (((flags & HEADING) && (top->flags & HEADING)) || ((key == K_OPTION || key == K_OPTGROUP) && top->key == K_OPTION))
            pop_to(s, s->size - 1);
        else if ((key == K_RT || key == K_RP) && (top->key == K_RT || top->key == K_RP) && s->size > 1 &&
                 s->stack[s->size - 2].key == K_RUBY)
            pop_to(s, s->size - 1);
    }
    if (key == K_BUTTON)
        close_found(s, find(s, K_BUTTON, SCOPE));
    else if (flags & TABLE && (key == K_TD || key == K_TH))
        close_found(s, find_in_table(s, K_TD, K_TH));
    else if (flags & TABLE && key == K_TR)
        close_found(s, find_in_table(s, K_TR, K_TR));
    else if (flags & TABLE && key != K_TABLE)
        close_found(s, find_in_table(s, key, key));
    else if (key == K_A || key == K_NOBR) {
        at = find(s, key, key == K_A ? MARKER : SCOPE);
        if (at >= 0)
            take_out(s, at);
    }
}

static void end_tag(State *s, uint64_t key, uint32_t flags)
{
    Py_ssize_t at = s->size - 1;
    for (; at >= 0 && s->stack[at].foreign == 1; at--) /* foreign content: by name alone */
        if (s->stack[at].key == key) {
            pop_to(s, at);
            return;
        }
    if (flags & FORMAT) {
        int blocks = 0;
        for (at = s->size - 1; at >= 0; at--) {
            if (s->stack[at].key == key && (!s->stack[at].foreign || s->stack[at].listed)) {
                if (s->stack[at].waiting) {
                    take_out(s, at);
                } else if (blocks == 0) {
                    s->stack[at].listed = 0;
                    pop_to(s, at);
                } else if (blocks < 8) { /* the adoption agency gives up after eight: then it stays */
                    take_out(s, at);
                }
                return;
            }
            blocks += (s->stack[at].flags & (SPECIAL | BLOCK)) != 0;
            if ((s->stack[at].flags & (SCOPE | MARKER)) || s->stack[at].foreign == 2)
                return;
        }
    } else if (key == K_FORM) {
        at = find(s, key, SCOPE);
        if (at >= 0)
            take_out(s, at);
    } else if (flags & HEADING) {
        for (at = s->size - 1; at >= 0 && !(s->stack[at].flags & SCOPE) && s->stack[at].foreign != 2; at--)
            if (s->stack[at].flags & HEADING) {
                pop_to(s, at);
                return;
            }
    } else if (flags & TABLE) {
        close_found(s, find_in_table(s, key, key));
    } else if (key == K_TEMPLATE) {
        close_found(s, find(s, key, 0));
    } else if (key == K_LI) {
        for (at = s->size - 1; at >= 0; at--) {
            uint64_t open = s->stack[at].key;
            if (open == K_LI) {
                pop_to(s, at);
                return;
            }
            if ((s->stack[at].flags & SCOPE) || open == K_OL || open == K_UL || s->stack[at].foreign == 2)
                return;
        }
    } else if (key == K_P) {
        for (at = s->size - 1; at >= 0; at--) {
            if (s->stack[at].key == K_P) {
                pop_to(s, at);
                return;
            }
            if ((s->stack[at].flags & SCOPE) || s->stack[at].key == K_BUTTON || s->stack[at].foreign == 2)
                break;
        }
        s->elements++; /* an end tag without its p makes an empty p */
    } else if (flags & BLOCK) {
        close_found(s, find(s, key, SCOPE));
    } else {
        close_found(s, find(s, key, SPECIAL | SCOPE));
    }
}

static void push(State *s, uint64_t key, uint32_t flags, uint64_t attributes, int foreign)
{
    Open open = {key, attributes, flags, (flags & FORMAT) && !foreign, 0, (uint8_t)foreign};
    if (open.listed) { /* at most three equal ones are opened again ("Noah's Ark") */
        int equal = 0;
        for (Py_ssize_t i = s->size - 1; i >= 0 && !(s->stack[i].flags & MARKER); i--)
            if (s->stack[i].listed && s->stack[i].key == key && s->stack[i].attributes == attributes && ++equal == 3)
                s->stack[i].listed = 0;
    }
    s->stack[s->size++] = open;
    count(s, &open, 1);
    if (s->size > s->deepest)
        s->deepest = s->size;
}

/* Whether an element of foreign content has HTML inside. For annotation-xml that depends on an attribute; where it
 * could, the scanner gets wary. */
static int holds_html(State *s, uint64_t key, uint32_t flags, const uint8_t *attributes, const uint8_t *end)
{
    Py_ssize_t root = s->size - 1;
    while (root > 0 && !(s->stack[root].flags & FOREIGN))
        root--;
    if (s->stack[root].key != K_MATH)
        return (flags & SVG_INTEGRATION) || key == K_TITLE;
    if (key == K_ANNOTATION_XML)
        for (; end - attributes > 4; attributes++)
            if (key_of(attributes, 4) == K_HTML) {
                s->wary = 1;
                return 1;
            }
    return (flags & MATH_INTEGRATION) != 0;
}

static uint64_t hash_of(const uint8_t *p, const uint8_t *end)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; p < end; p++)
        hash = (hash ^ *p) * 0x100000001b3u;
    return hash;
}

static void scan(State *s, const uint8_t *p, const uint8_t *end, Py_ssize_t max_depth, Py_ssize_t max_elements)
{
    while (s->deepest <= max_depth && s->elements <= max_elements) {
        const uint8_t *text = p;
        p = memchr(p, '<', (size_t)(end - p));
        s->steps += (double)s->size * (double)((p != NULL ? p : end) - text);
        if (s->waiting && reopens(s, text, p != NULL ? p : end))
            reopen(s);
        if (p == NULL)
            return;
        int closing = end - p > 1 && p[1] == '/';
        const uint8_t *name = p + 1 + closing;
        if (name >= end)
            return;
        if (!(lower(*name) >= 'a' && lower(*name) <= 'z')) {
            p = closing || *name == '!' || *name == '?' ? skip_comment(p, end) : p + 1;
            continue;
        }
        p = name;
        while (p < end && !blank(*p) && *p != '/' && *p != '>')
            p++;
        size_t size = (size_t)(p - name);
        uint64_t key = key_of(name, size);
        uint32_t flags = slot_flags[slot_of(key)];
        const uint8_t *after_name = p;
        Py_ssize_t attributes;
        int closed;
        p = skip_attributes(p, end, &attributes, &closed);
        if (p == NULL)
            return;
        if (attributes > s->most_attributes)
            s->most_attributes = attributes;
        int foreign = s->size > 0 && s->stack[s->size - 1].foreign == 1;
        if (foreign && ((flags & BREAKOUT && !closing) || key == K_P || key == K_BR)) {
            while (s->size > 0 && s->stack[s->size - 1].foreign == 1)
                pop_to(s, s->size - 1);
            foreign = 0;
        }
        if (closing) {
            s->elements += key == K_BR;
            end_tag(s, key, flags);
            continue;
        }
        s->elements++;
        s->steps += (double)s->size * STEPS_PER_ELEMENT;
        if (key == K_FRAMESET) { /* in framesets all else is ignored, raw elements with their switch to raw text */
            s->foreign++;
            if (++s->framesets > s->deepest)
                s->deepest = s->framesets;
        }
        if (foreign) {
            if (!closed || s->wary)
                push(s, key, flags & FOREIGN, 0, holds_html(s, key, flags, after_name, p) ? 2 : 1);
            if (!closed && key == K_FONT && attributes > 0) /* with some attributes it breaks out */
                s->wary = s->stack[s->size - 1].listed = 1;
            continue;
        }
        if (flags & TABLE && key != K_TABLE && find_in_table(s, K_TABLE, K_TABLE) < 0) {
            if (!s->templates && !s->foreign) /* parts of a table outside a table: the parser ignores them */
                continue;
            flags = 0;
        }
        if (!s->wary)
            close_implied(s, key, flags);
        if (!(flags & (CLOSES_P | TABLE | QUIET | SILENT)))
            reopen(s);
        if (flags & RAW && !s->foreign && (!s->selects || flags & RAW_IN_SELECT)) {
            if (key == K_PLAINTEXT)
                return;
            p = skip_raw(p, end, name, size);
        } else if (flags & FOREIGN) {
            if (!closed)
                push(s, key, flags, 0, 1);
        } else if (!(flags & (VOID | SILENT)) && (key != K_FORM || s->templates || find(s, K_FORM, 0) < 0)) {
            push(s, key, flags, flags & FORMAT ? hash_of(after_name, p) : 0, 0);
        }
    }
}

static PyObject *cost(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *html;
    Py_ssize_t max_depth, max_elements, size;
    if (!PyArg_ParseTuple(args, "Unn:cost", &html, &max_depth, &max_elements))
        return NULL;
    if (max_depth < 1 || max_depth > 1000000 || max_elements < 1)
        return PyErr_Format(PyExc_ValueError, "max_depth %zd and max_elements %zd given, 1 to 1000000 and 1 or more are allowed",
                            max_depth, max_elements);
    const char *bytes = PyUnicode_AsUTF8AndSize(html, &size); /* kept in the str: the parser uses the same bytes */
    if (bytes == NULL)
        return NULL;
    State s = {0};
    s.stack = PyMem_RawCalloc(2 * ((size_t)max_depth + 2), sizeof(Open));
    if (s.stack == NULL)
        return PyErr_NoMemory();
    s.spare = s.stack + max_depth + 2;
    Py_BEGIN_ALLOW_THREADS
    scan(&s, (const uint8_t *)bytes, (const uint8_t *)bytes + size, max_depth, max_elements);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(s.stack);
    return Py_BuildValue("nnnd", s.deepest, s.elements, s.most_attributes, s.steps);
}

static PyMethodDef methods[] = {
    {"cost", cost, METH_VARARGS,
     "cost(html, max_depth, max_elements) -> (depth, elements, attributes of the richest tag, steps).\n\n"
     "steps: the sum of depths over all bytes of text and elements, an element as 100 bytes.\n"
     "Stops, with a depth or a number of elements beyond the limit, as soon as one is passed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "htmlscan", "Cost of parsing a page, foreseen.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_htmlscan(void)
{
    fill_tables();
    return PyModule_Create(&module);
}
