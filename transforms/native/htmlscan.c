/* What parsing a page would cost, from one pass over its markup: depth, elements, attributes.
 *
 * HTML parsers and extractors take quadratic time, or run out of stack or memory, on pages made for it: 100,000 nested
 * <div>, a tag with 100,000 attributes, unclosed <font> elements that are opened again in each later paragraph. This
 * scanner follows the tokenizer and the stack of open elements of the HTML standard (section 13.2) closely enough that
 * what it reports is never far below the truth; where a rule would need the whole tree builder, it counts too much.
 *
 * Cost: linear in the page: it stops when a limit is passed, so each tag costs at most max_depth steps. Memory: 64
 * bytes per level of max_depth. Safety: arguments are checked at entry; the bytes are read through pointers that are
 * compared with the end before each read, the stack has two places more than the depth at which scanning stops. Long
 * names and attributes are compared by keyed hashes (include/htmlscan_names.h), so no page can choose two that look the
 * same. The GIL is released. */
#include "htmlscan_names.h"
#include "htmlscan_tokens.h"
#include "htmlscan_stack.h"

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
        int option = key == K_OPTION || key == K_OPTGROUP;
        if ((flags & HEADING && top->flags & HEADING) || (option && top->key == K_OPTION))
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
    else if (key == K_TABLE) { /* a table directly inside a table ends it */
        for (at = s->size - 1; at >= 0; at--) {
            const Open *open = &s->stack[at];
            if (open->key == K_TABLE && !open->foreign) {
                pop_to(s, at);
                break;
            }
            if ((open->flags & TABLE && open->flags & MARKER) || open->key == K_TEMPLATE || open->key == K_SELECT)
                break;
            if (open->foreign)
                break;
        }
    } else if (key == K_A) {
        at = find(s, key, MARKER);
        if (at >= 0)
            take_out(s, at);
    }
}

static void end_tag(State *s, uint64_t key, uint32_t flags)
{
    Py_ssize_t at = s->size - 1;
    for (; at >= 0 && s->stack[at].foreign; at--) /* foreign content: by name alone */
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
            push(s, key, flags, flags & FORMAT ? siphash(&name_key, after_name, (size_t)(p - after_name), 0) : 0, 0);
        }
    }
}

static PyObject *cost(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *html, *depth, *elements;
    int64_t max_depth, max_elements;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "UOO:cost", &html, &depth, &elements)
        || read_integer(depth, "max_depth", 1, 1000000, &max_depth) < 0
        || read_integer(elements, "max_elements", 1, PY_SSIZE_T_MAX, &max_elements) < 0)
        return NULL;
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
    if (draw_key(&name_key) < 0)
        return NULL;
    fill_tables();
    PyObject *self = PyModule_Create(&module);
    if (self && PyModule_AddIntConstant(self, "MOST_PROBES", (long)most_probes) < 0)
        Py_CLEAR(self);
    return self;
}
