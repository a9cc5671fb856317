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
#include "page_bytes.h"
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
static const uint8_t *utf8_of(PyObject *html, Py_ssize_t *size)
{
    const uint8_t *bytes = page_bytes(html, "html", size);
    if (!bytes || PyUnicode_Check(html) || utf8_characters(bytes, bytes + *size) >= 0)
        return bytes;
    PyErr_SetString(PyExc_ValueError, "html: bytes given that are not UTF-8");
    return NULL;
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
    const uint8_t *bytes = utf8_of(html, &size);
    if (!bytes)
        return NULL;
    if (size > MOST_BYTES) {
        PyErr_Format(PyExc_ValueError, "html: %zd bytes given, at most %d are allowed", size, MOST_BYTES);
        return NULL;
    }
    State *s = PyMem_RawCalloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    s->start = s->at = bytes;
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

/* Blocks' words: text, blocks as parse gives them. -1 and an exception if they cannot come from parse. */
CHECK int check_words(const Py_buffer *text, const Py_buffer *blocks)
{
    const Py_ssize_t count = blocks->len / 4 / B_COLUMNS;
    int good = blocks->len == count * 4 * B_COLUMNS && (uintptr_t)blocks->buf % 4 == 0;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        const int32_t *b = (const int32_t *)blocks->buf + i * B_COLUMNS;
        good = b[B_START] >= 0 && b[B_START] <= b[B_END] && b[B_END] <= text->len;
    }
    if (!good)
        PyErr_SetString(PyExc_ValueError, "text, blocks: as parse gives them are needed");
    return good ? 0 : -1;
}

/* words(text, blocks) -> (hashes, counts): uint32, the words of all blocks in turn; int32, how many each block has. */
static PyObject *block_words(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"text", FLAG, 0}, {"blocks", RAW32, 0}};
    PyObject *given[2], *result = NULL;
    Py_buffer views[2];
    Buffer hashes = {0}, counts = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given[0], &given[1]) || take_arrays(arrays, given, views, 2) < 0)
        return NULL;
    if (check_words(&views[0], &views[1]) < 0)
        goto done;
    const Py_ssize_t count = views[1].len / 4 / B_COLUMNS;
    for (Py_ssize_t i = 0; i < count; i++) {
        const int32_t *b = (const int32_t *)views[1].buf + i * B_COLUMNS;
        const uint8_t *at = (const uint8_t *)views[0].buf + b[B_START], *end = (const uint8_t *)views[0].buf + b[B_END];
        int32_t words = 0;
        for (uint32_t hash; (hash = next_word(&at, end)); words++) {
            if (!reserve(&hashes, sizeof hash)) {
                PyErr_NoMemory();
                goto done;
            }
            memcpy(hashes.data + hashes.size, &hash, sizeof hash);
            hashes.size += sizeof hash;
        }
        if (!reserve(&counts, sizeof words)) {
            PyErr_NoMemory();
            goto done;
        }
        memcpy(counts.data + counts.size, &words, sizeof words);
        counts.size += sizeof words;
    }
    result = Py_BuildValue("y#y#", bytes_of(&hashes), (Py_ssize_t)hashes.size, bytes_of(&counts), (Py_ssize_t)counts.size);
done:
    PyMem_RawFree(hashes.data);
    PyMem_RawFree(counts.data);
    release_arrays(views, 2);
    return result;
}

/* say(text, blocks, lexicon) -> int32 of blocks x 4: what the lexicon says of each block's words. */
static PyObject *say_blocks(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"text", FLAG, 0}, {"blocks", RAW32, 0}, {"lexicon", INT32, 0}};
    PyObject *given[3], *result = NULL;
    Py_buffer views[3];
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2]) || take_arrays(arrays, given, views, 3) < 0)
        return NULL;
    const size_t slots = (size_t)views[2].len / 4;
    const Py_ssize_t count = views[1].len / 4 / B_COLUMNS;
    if (check_words(&views[0], &views[1]) < 0)
        goto done;
    if (slots < LEAST_SLOTS || slots > MOST_SLOTS || slots & (slots - 1)) {
        PyErr_Format(PyExc_ValueError, "lexicon: %zu slots given, a power of two from %d to %d is needed", slots,
                     LEAST_SLOTS, MOST_SLOTS);
        goto done;
    }
    if (!(result = PyBytes_FromStringAndSize(NULL, count * W_COLUMNS * 4)))
        goto done;
    int32_t *said = (int32_t *)(void *)PyBytes_AS_STRING(result);
    const uint8_t *text = views[0].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        const int32_t *b = (const int32_t *)views[1].buf + i * B_COLUMNS;
        say(views[2].buf, slots, text + b[B_START], text + b[B_END], said + i * W_COLUMNS);
    }
    Py_END_ALLOW_THREADS
done:
    release_arrays(views, 3);
    return result;
}

/* The arrays of a page: blocks, groups, elements as parse gives them, what a lexicon says (said), values of the page as float32, hashes of its title. */
enum { PAGE_ARRAYS = 6 };
static const Array PAGE[PAGE_ARRAYS] = {{"blocks", RAW32, 0}, {"groups", FLAG, 0}, {"elements", RAW32, 0},
                                        {"said", RAW32, 0}, {"values", UINT32, 0}, {"titles", UINT32, 0}};

/* -1 and an exception if the arrays cannot come from parse. */
static int check_page(Page *p, const Py_buffer *views, Py_ssize_t source)
{
    memset(p, 0, sizeof *p);
    p->n = views[0].len / 4 / B_COLUMNS;
    p->ne = views[2].len / 4 / N_COLUMNS;
    p->blocks = views[0].buf, p->near = views[1].buf, p->elements = views[2].buf;
    p->said = views[3].buf, p->given = views[4].buf, p->titles = views[5].buf;
    p->given_count = views[4].len / 4, p->title_count = views[5].len / 4;
    p->source = source;
    int good = views[0].len == p->n * 4 * B_COLUMNS && views[1].len == p->n * GROUPS
               && views[2].len == p->ne * 4 * N_COLUMNS && views[3].len == p->n * 4 * W_COLUMNS && p->given_count <= MOST_PAGE && p->title_count <= MOST_PAGE;
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
        PyErr_SetString(PyExc_ValueError, "blocks, groups, elements, said: arrays as parse and say give them are needed");
    return good ? 0 : -1;
}

/* features(blocks, groups, elements, said, values, titles, source) -> float32 of blocks x features. source: size of the page. */
static PyObject *page_features(PyObject *module, PyObject *args)
{
    PyObject *given[PAGE_ARRAYS], *result = NULL;
    Py_buffer views[PAGE_ARRAYS];
    Py_ssize_t source;
    Page page;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOn", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &source)
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

/* score(blocks, groups, elements, said, values, titles, source, features, edges, leaves, depth, out): adds the trees' leaves. */
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
    if (!PyArg_ParseTuple(args, "OOOOOOnOOOiO", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &source,
                          &given[6], &given[7], &given[8], &depth, &given[9])
        || take_arrays(arrays, given, views, ALL) < 0)
        return NULL;
    memset(&page, 0, sizeof page);
    if (check_page(&page, views, source) < 0)
        goto done;
    if (views[9].len / 4 != page.n) {
        PyErr_SetString(PyExc_ValueError, "out: an array of as many values as there are blocks is needed");
        goto done;
    }
    int good = 1;
    const Py_ssize_t width = BASE_WIDTH + page.given_count;
    if (check_trees(&model, &views[6], &views[7], &views[8], depth, width) < 0)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    good = page.n == 0 || score_page(&page, &model, width, views[9].buf);
    Py_END_ALLOW_THREADS
    result = good ? Py_NewRef(Py_None) : PyErr_NoMemory();
done:
    free_page(&page);
    release_arrays(views, ALL);
    return result;
}

static PyMethodDef methods[] = {
    {"features", page_features, METH_VARARGS, "features(blocks, groups, elements, said, values, titles, source) -> float32"},
    {"score", score_blocks, METH_VARARGS,
     "score(blocks, groups, elements, said, values, titles, source, features, edges, leaves, depth, out)"},
    {"words", block_words, METH_VARARGS, "words(text, blocks) -> (hashes, counts)"},
    {"say", say_blocks, METH_VARARGS, "say(text, blocks, lexicon) -> int32"},
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
           || PyModule_AddIntConstant(module, "PROBES", PROBES)
           || PyModule_AddIntConstant(module, "LEAST_SLOTS", LEAST_SLOTS)
           || PyModule_AddIntConstant(module, "MOST_SLOTS", MOST_SLOTS)
           || PyModule_AddIntConstant(module, "FEATURES", BASE_WIDTH) ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "htmlblocks", "HTML to blocks of text.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_htmlblocks(void) { return PyModuleDef_Init(&module); }
