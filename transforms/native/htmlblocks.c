/* HTML to blocks of text in one pass, with what the extractor's model wants to know about each.
 *
 * A tokenizer of the HTML standard (section 13.2.5) feeds a bounded stack of open elements. No tree is built: an element
 * is remembered only if text stands in it. Scripts, styles and comments are passed over without being parsed.
 *
 * Cost: linear in the page. A start or end tag looks at no more than MOST_OPEN open elements, and only when one that it
 * could close is open. Memory: a few times the page at worst, 30 % of it on real ones. Safety: every read is compared
 * with the end first; the stack stops growing at MOST_OPEN, deeper elements are taken for parts of the last one. The GIL
 * is released. */
#include "htmlblocks_output.h"
#include "htmlblocks_stack.h"
#include "htmlblocks_text.h"
#include "htmlblocks_tags.h"
#include "htmlblocks_features.h"
#include "trees_apply.h"
#include "utf8.h"
#include <stdlib.h>

enum { CHUNK = 256 /* blocks whose features are held at a time */ };

static void parse(State *s)
{
    while (s->at < s->end && !s->failed && s->block_count <= s->limit) {
        if (*s->at != '<') {
            const uint8_t *stop = memchr(s->at, '<', (size_t)(s->end - s->at));
            text_run(s, s->at, stop ? stop : s->end);
            s->at = stop ? stop : s->end;
            continue;
        }
        markup(s);
    }
    flush(s);
    while (s->depth > 0)
        pop(s);
}

static PyObject *ranges(const State *s)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < s->extras; i++) {
        const Extra *extra = &s->extra[i];
        PyObject *item = Py_BuildValue("(iN)", extra->kind, PyUnicode_DecodeUTF8((const char *)extra->text,
                                                                                 (Py_ssize_t)extra->size, "replace"));
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static const char *bytes_of(const Buffer *buffer) { return buffer->data ? (const char *)buffer->data : ""; }

/* utf8_length(data) -> characters, -1 where `data` is not UTF-8. */
static PyObject *utf8_length(PyObject *module, PyObject *data)
{
    (void)module;
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "data: bytes are needed");
        return NULL;
    }
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(data);
    return PyLong_FromLongLong(utf8_characters(at, at + PyBytes_GET_SIZE(data)));
}

/* The UTF-8 of a str or of bytes that are UTF-8, NULL and an exception for anything else. */
static const char *utf8_of(PyObject *html, Py_ssize_t *size)
{
    if (PyUnicode_Check(html))
        return PyUnicode_AsUTF8AndSize(html, size);
    if (!PyBytes_Check(html)) {
        PyErr_SetString(PyExc_TypeError, "html: a str or bytes are needed");
        return NULL;
    }
    const char *bytes = PyBytes_AS_STRING(html);
    *size = PyBytes_GET_SIZE(html);
    if (utf8_characters((const uint8_t *)bytes, (const uint8_t *)bytes + *size) < 0) {
        PyErr_SetString(PyExc_ValueError, "html: bytes given that are not UTF-8");
        return NULL;
    }
    return bytes;
}

/* parse(html, most) -> (text, blocks, groups, elements, extras, body). It stops behind block `most`. */
static PyObject *parse_html(PyObject *module, PyObject *args)
{
    PyObject *html, *most;
    Py_ssize_t size;
    int64_t limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &html, &most) || read_integer(most, "most", 1, MOST_BLOCKS, &limit) < 0)
        return NULL;
    const char *bytes = utf8_of(html, &size);
    if (!bytes)
        return NULL;
    if (size > MOST_BYTES) {
        PyErr_Format(PyExc_ValueError, "html: %zd bytes given, at most %d are allowed", size, MOST_BYTES);
        return NULL;
    }
    State *s = PyMem_RawCalloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    s->start = s->at = (const uint8_t *)bytes;
    s->end = s->at + size;
    s->last_source = s->at;
    s->limit = (int)limit;
    begin(s);
    Py_BEGIN_ALLOW_THREADS
    parse(s);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL, *extras = s->failed ? PyErr_NoMemory() : ranges(s);
    if (extras)
        result = Py_BuildValue("y#y#y#y#NK", bytes_of(&s->out), (Py_ssize_t)s->out.size, bytes_of(&s->blocks),
                               (Py_ssize_t)s->blocks.size, bytes_of(&s->distances), (Py_ssize_t)s->distances.size,
                               bytes_of(&s->elements), (Py_ssize_t)s->elements.size, extras,
                               (unsigned long long)s->body_groups);
    PyMem_RawFree(s->out.data);
    PyMem_RawFree(s->blocks.data);
    PyMem_RawFree(s->distances.data);
    PyMem_RawFree(s->elements.data);
    PyMem_RawFree(s);
    return result;
}

/* The arrays of a page: blocks, groups, elements as parse gives them, values of the page as float32, hashes of its title. */
enum { PAGE_ARRAYS = 5 };
static const Array PAGE[PAGE_ARRAYS] = {{"blocks", RAW32, 0}, {"groups", FLAG, 0}, {"elements", RAW32, 0},
                                        {"values", UINT32, 0}, {"titles", UINT32, 0}};

/* -1 and an exception if the arrays cannot come from parse. */
static int check_page(Page *p, const Py_buffer *views, Py_ssize_t source)
{
    memset(p, 0, sizeof *p);
    p->n = views[0].len / 4 / B_COLUMNS;
    p->ne = views[2].len / 4 / N_COLUMNS;
    p->blocks = views[0].buf, p->near = views[1].buf, p->elements = views[2].buf;
    p->given = views[3].buf, p->titles = views[4].buf;
    p->given_count = views[3].len / 4, p->title_count = views[4].len / 4;
    p->source = source;
    int good = views[0].len == p->n * 4 * B_COLUMNS && views[1].len == p->n * GROUPS
               && views[2].len == p->ne * 4 * N_COLUMNS && p->given_count <= MOST_PAGE && p->title_count <= MOST_PAGE;
    for (int i = 0; good && i < PAGE_ARRAYS; i++)
        good = (uintptr_t)views[i].buf % 4 == 0 || i == 1;
    for (Py_ssize_t i = 0; good && i < p->n; i++)
        good = block_of(p, i)[B_ELEMENT] >= -1 && block_of(p, i)[B_ELEMENT] < p->ne;
    for (Py_ssize_t e = 0; good && e < p->ne; e++) {
        const int32_t *element = element_of(p, e);
        good = element[N_PARENT] >= -1 && element[N_PARENT] < e && element[N_FIRST] >= 0
               && element[N_FIRST] < element[N_LAST] && element[N_LAST] <= p->n;
    }
    if (!good)
        PyErr_SetString(PyExc_ValueError, "blocks, groups, elements: arrays as parse gives them are needed");
    return good ? 0 : -1;
}

/* features(blocks, groups, elements, values, titles, source) -> float32 of blocks x features. source: size of the page. */
static PyObject *page_features(PyObject *module, PyObject *args)
{
    PyObject *given[PAGE_ARRAYS], *result = NULL;
    Py_buffer views[PAGE_ARRAYS];
    Py_ssize_t source;
    Page page;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOn", &given[0], &given[1], &given[2], &given[3], &given[4], &source)
        || take_arrays(PAGE, given, views, PAGE_ARRAYS) < 0)
        return NULL;
    if (check_page(&page, views, source) < 0)
        goto done;
    float row[MOST_WIDTH] = {0};
    int good = prepare_features(&page);
    const Py_ssize_t width = BASE_WIDTH + page.given_count;
    if (good && page.n && features_of(&page, 0, row) != width)
        PyErr_Format(PyExc_RuntimeError, "%zd features, not %zd", features_of(&page, 0, row), width);
    else if (good && (result = PyByteArray_FromStringAndSize(NULL, page.n * width * (Py_ssize_t)sizeof(float)))) {
        char *out = PyByteArray_AS_STRING(result);
        for (Py_ssize_t i = 0; i < page.n; i++) {
            features_of(&page, i, row);
            memcpy(out + i * width * (Py_ssize_t)sizeof(float), row, (size_t)width * sizeof(float));
        }
    } else if (!good) {
        PyErr_NoMemory();
    }
    free_page(&page);
done:
    release_arrays(views, PAGE_ARRAYS);
    return result;
}

/* Scores of all blocks; 0 without memory. */
static int score_page(Page *page, const Trees *model, Py_ssize_t width, int32_t *out)
{
    float *rows = malloc(CHUNK * (size_t)width * sizeof *rows + MOST_WIDTH * sizeof *rows);
    const int good = rows && prepare_features(page);
    for (Py_ssize_t i = 0; good && i < page->n; i += CHUNK) {
        const Py_ssize_t count = page->n - i < CHUNK ? page->n - i : CHUNK;
        for (Py_ssize_t k = 0; k < count; k++)
            features_of(page, i + k, rows + k * width);
        apply_trees(model, rows, width, out + i, count);
    }
    free(rows);
    return good;
}

/* score(blocks, groups, elements, values, titles, source, features, edges, leaves, depth, out): adds the trees' leaves. */
static PyObject *score_blocks(PyObject *module, PyObject *args)
{
    enum { ALL = PAGE_ARRAYS + 4 };
    Array arrays[ALL] = {[PAGE_ARRAYS] = {"features", UINT16, 0}, {"edges", UINT32, 0}, {"leaves", INT32, 0},
                         {"out", INT32, WRITTEN}};
    PyObject *given[ALL], *result = NULL;
    Py_buffer views[ALL];
    Py_ssize_t source;
    int depth;
    Page page;
    Trees model;
    (void)module;
    memcpy(arrays, PAGE, sizeof PAGE);
    if (!PyArg_ParseTuple(args, "OOOOOnOOOiO", &given[0], &given[1], &given[2], &given[3], &given[4], &source, &given[5],
                          &given[6], &given[7], &depth, &given[8])
        || take_arrays(arrays, given, views, ALL) < 0)
        return NULL;
    memset(&page, 0, sizeof page);
    if (check_page(&page, views, source) < 0)
        goto done;
    if (views[8].len / 4 != page.n) {
        PyErr_SetString(PyExc_ValueError, "out: an array of as many values as there are blocks is needed");
        goto done;
    }
    int good = 1;
    const Py_ssize_t width = BASE_WIDTH + page.given_count;
    if (check_trees(&model, &views[5], &views[6], &views[7], depth, width) < 0)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    good = page.n == 0 || score_page(&page, &model, width, views[8].buf);
    Py_END_ALLOW_THREADS
    result = good ? Py_NewRef(Py_None) : PyErr_NoMemory();
done:
    free_page(&page);
    release_arrays(views, ALL);
    return result;
}

static PyMethodDef methods[] = {
    {"features", page_features, METH_VARARGS, "features(blocks, groups, elements, values, titles, source) -> float32"},
    {"score", score_blocks, METH_VARARGS,
     "score(blocks, groups, elements, values, titles, source, features, edges, leaves, depth, out)"},
    {"parse", parse_html, METH_VARARGS, "parse(html, most) -> (text, blocks, groups, elements, extras, body)"},
    {"utf8_length", utf8_length, METH_O, "utf8_length(data) -> characters, -1: not UTF-8"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    static int ready;
    if (!ready) {
        make_automaton();
        make_hashes();
        make_types();
        if (draw_key(&group_key) < 0)
            return -1;
        if (make_references() < 0)
            return -1;
        ready = 1;
    }
    return PyModule_AddIntConstant(module, "BLOCK_COLUMNS", B_COLUMNS)
           || PyModule_AddIntConstant(module, "ELEMENT_COLUMNS", N_COLUMNS)
           || PyModule_AddIntConstant(module, "GROUPS", GROUPS)
           || PyModule_AddIntConstant(module, "FEATURES", BASE_WIDTH) ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "htmlblocks", "HTML to blocks of text.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_htmlblocks(void) { return PyModuleDef_Init(&module); }
