/* Where words are in a page, which parts of it are hidden, and which elements are open at a place: without a tree.
 *
 * For what is in few pages and has to be looked for in all. Words are looked for by their rarest letters, in as many
 * places at once as vector registers hold; only where all of these fit is a place looked at. Tags are read as
 * page_rights/ needs them: `<` with a name of HOLDERS, up to the next `>` with no `<` before it.
 *
 * Cost: linear; 45 to 55 GB/s and word within a processor's cache. Memory: what is found. Safety: every read is compared
 * with the end first; words have bounds, open elements MOST_OPEN. The GIL is released. */
#include "kernel.h"
#include "page_bytes.h"

enum {
    MOST_WORDS = 16,
    MOST_LETTERS = 64, /* of a word */
    LOOKED_AT = 4,     /* letters of a word, the rarest, in all places of a stretch: first two, then all of them */
    STRETCH = 256,
    MOST_OPEN = 500, /* elements; deeper ones are not noticed */
    MOST_CLOSED = 8, /* by one end tag: more were not forgotten by the author */
};

static const char COMMON[] = " etaison\"rlc-dpmu.0/hgf1b:2,=vw><"; /* in pages, the most common first */
static uint8_t commonness[256]; /* 0: not among them */

typedef struct {
    uint8_t letters[MOST_LETTERS], either[MOST_LETTERS]; /* either: the bit that tells large letters from small ones */
    Py_ssize_t size, where[LOOKED_AT];
} Word;

static void choose_letters(Word *word)
{
    uint64_t chosen = 0;
    for (int k = 0; k < LOOKED_AT; k++) {
        size_t rarest = 0;
        for (Py_ssize_t i = 0; i < word->size; i++) {
            const size_t rarity = sizeof COMMON - (size_t)commonness[word->letters[i]];
            if (rarity > rarest && !(chosen >> i & 1))
                rarest = rarity, word->where[k] = i;
        }
        if (!rarest) /* the word is shorter */
            word->where[k] = word->where[0];
        chosen |= (uint64_t)1 << word->where[k];
    }
}

INLINE int fits(const uint8_t *at, const Word *word)
{
    for (Py_ssize_t i = 0; i < word->size; i++)
        if ((at[i] | word->either[i]) != word->letters[i])
            return 0;
    return 1;
}

/* Whether in one of the next STRETCH places the first `count` letters that are looked at fit. */
INLINE int may_fit(const uint8_t *at, const Word *word, int count, int any_case)
{
    uint8_t found = 0;
    const uint8_t *in[LOOKED_AT];
    uint8_t letter[LOOKED_AT], either[LOOKED_AT];
    for (int k = 0; k < count; k++) {
        in[k] = at + word->where[k], letter[k] = word->letters[word->where[k]];
        either[k] = any_case ? word->either[word->where[k]] : 0;
    }
    for (int i = 0; i < STRETCH; i++) {
        uint8_t all = ((in[0][i] | either[0]) == letter[0]) & ((in[1][i] | either[1]) == letter[1]);
        if (count == LOOKED_AT)
            all &= ((in[2][i] | either[2]) == letter[2]) & ((in[3][i] | either[3]) == letter[3]);
        found |= all;
    }
    return found;
}

/* The first place of a word from `at` on that ends before `end`, NULL for none. */
INLINE const uint8_t *search(const uint8_t *at, const uint8_t *end, const Word *word, int any_case)
{
    if (end - at < word->size)
        return NULL;
    const uint8_t *const stop = end - word->size + 1;
    for (; stop - at >= STRETCH; at += STRETCH)
        if (may_fit(at, word, 2, any_case) && may_fit(at, word, LOOKED_AT, any_case))
            for (int i = 0; i < STRETCH; i++)
                if (fits(at + i, word))
                    return at + i;
    for (; at < stop; at++)
        if (fits(at, word))
            return at;
    return NULL;
}

VECTORISED static const uint8_t *next_place(const uint8_t *at, const uint8_t *end, const Word *word, int any_case)
{
    return any_case ? search(at, end, word, 1) : search(at, end, word, 0);
}

typedef struct {
    int64_t *values;
    size_t count, room;
} Numbers;

/* 0 without memory. */
static int add(Numbers *numbers, int64_t value)
{
    if (numbers->count == numbers->room) {
        const size_t room = numbers->room ? 2 * numbers->room : 64;
        int64_t *values = PyMem_RawRealloc(numbers->values, room * sizeof *values);
        if (!values)
            return 0;
        numbers->values = values, numbers->room = room;
    }
    numbers->values[numbers->count++] = value;
    return 1;
}

/* Lists of `width` numbers each as tuples, or of one as they are; NULL and an exception without memory. */
static PyObject *listed(const Numbers *numbers, int width)
{
    const Py_ssize_t count = (Py_ssize_t)numbers->count / width;
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        const int64_t *values = numbers->values + i * width;
        PyObject *item = width == 1 ? PyLong_FromLongLong(*values) : Py_BuildValue("(LL)", values[0], values[1]);
        if (item)
            PyList_SET_ITEM(list, i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* -1 and an exception for words that are none. */
static int read_words(PyObject *given, int any_case, Word *words, Py_ssize_t *count)
{
    if (!PyTuple_Check(given)) {
        PyErr_Format(PyExc_TypeError, "words: %s given, a tuple is needed", Py_TYPE(given)->tp_name);
        return -1;
    }
    *count = PyTuple_GET_SIZE(given);
    if (check_range("words: their number", *count, 1, MOST_WORDS) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < *count; i++) {
        PyObject *letters = PyTuple_GET_ITEM(given, i);
        if (!PyBytes_Check(letters)) {
            PyErr_Format(PyExc_TypeError, "words: %s given, bytes are needed", Py_TYPE(letters)->tp_name);
            return -1;
        }
        words[i].size = PyBytes_GET_SIZE(letters);
        if (check_range("words: the length of one", words[i].size, 1, MOST_LETTERS) < 0)
            return -1;
        memcpy(words[i].letters, PyBytes_AS_STRING(letters), (size_t)words[i].size);
        for (Py_ssize_t k = 0; k < words[i].size; k++)
            words[i].either[k] = any_case && (uint8_t)((words[i].letters[k] | 32) - 'a') < 26 ? 32 : 0;
        choose_letters(&words[i]);
    }
    return 0;
}

/* places(page, words, until, any_case, most): of each word in turn its places in page[:until] that do not overlap. */
static PyObject *places(PyObject *module, PyObject *args)
{
    PyObject *page, *given, *until, *limit;
    int any_case, good = 1;
    int64_t end, most;
    Word words[MOST_WORDS];
    Py_ssize_t count, size;
    Numbers found = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOpO", &page, &given, &until, &any_case, &limit)
        || read_integer(until, "until", 0, INT64_MAX, &end) < 0 || read_integer(limit, "most", 1, INT64_MAX, &most) < 0
        || read_words(given, any_case, words, &count) < 0)
        return NULL;
    const uint8_t *start = page_bytes(page, "page", &size);
    if (!start)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++)
        for (const uint8_t *at = start; good && (int64_t)found.count < most; at += words[i].size) {
            if (!(at = next_place(at, start + (end < size ? end : size), &words[i], any_case)))
                break;
            good = add(&found, at - start);
        }
    Py_END_ALLOW_THREADS
    PyObject *result = good ? listed(&found, 1) : PyErr_NoMemory();
    PyMem_RawFree(found.values);
    return result;
}

INLINE int is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Whether a name in small letters is at `at`, in any case, with one of `>`, `/` and spaces behind it. */
INLINE int named(const uint8_t *at, const uint8_t *end, const char *name, Py_ssize_t size)
{
    if (end - at <= size || !(is_space(at[size]) || at[size] == '>' || at[size] == '/'))
        return 0;
    for (Py_ssize_t i = 0; i < size; i++)
        if ((at[i] | 32) != (uint8_t)name[i])
            return 0;
    return 1;
}

typedef struct {
    const char *name;
    Py_ssize_t size;
} Name;

#define NAME(name) {name, sizeof name - 1}

static const Name HIDING[] = {NAME("script"), NAME("style"), NAME("template"), NAME("noscript")};
enum { HIDING_NAMES = sizeof HIDING / sizeof *HIDING };

static const Name HOLDERS[] = {
    NAME("head"), NAME("body"), NAME("header"), NAME("footer"), NAME("aside"), NAME("figure"), NAME("figcaption"),
    NAME("article"), NAME("section"), NAME("main"), NAME("nav"), NAME("div"), NAME("blockquote"), NAME("li"),
    NAME("span"), NAME("p"), NAME("small"), NAME("td"), NAME("table"), NAME("ol"), NAME("ul"), NAME("address"),
    NAME("cite"), NAME("em"),
};
enum { HOLDER_NAMES = sizeof HOLDERS / sizeof *HOLDERS, PARAGRAPH = 15 };

INLINE int name_at(const uint8_t *at, const uint8_t *end, const Name *names, int count)
{
    for (int i = 0; i < count; i++)
        if (end - at > names[i].size && (at[0] | 32) == (uint8_t)names[i].name[0]
            && named(at, end, names[i].name, names[i].size))
            return i;
    return -1;
}

/* Where what begins with the `<` at `at` is no longer hidden; NULL if nothing hidden begins there before `until`. */
static const uint8_t *hidden_until(const uint8_t *at, const uint8_t *until, const uint8_t *end)
{
    if (until - at >= 4 && !memcmp(at, "<!--", 4)) {
        for (const uint8_t *close = at + 4; (close = memchr(close, '>', (size_t)(end - close))); close++)
            if (close - at >= 6 && close[-1] == '-' && close[-2] == '-')
                return close + 1;
        return end;
    }
    const int name = until - at > 1 ? name_at(at + 1, until, HIDING, HIDING_NAMES) : -1;
    if (name < 0)
        return NULL;
    for (const uint8_t *close = at + HIDING[name].size + 2; (close = memchr(close, '<', (size_t)(end - close))); close++)
        if (end - close > 2 && close[1] == '/' && named(close + 2, end, HIDING[name].name, HIDING[name].size))
            return close;
    return end;
}

/* hidden(page, until): begin and end of all comments, scripts, styles and templates that begin in page[:until]. */
static PyObject *hidden(PyObject *module, PyObject *args)
{
    PyObject *page, *given;
    Py_ssize_t size;
    int64_t limit;
    int good = 1;
    Numbers spans = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &page, &given) || read_integer(given, "until", 0, INT64_MAX, &limit) < 0)
        return NULL;
    const uint8_t *start = page_bytes(page, "page", &size);
    if (!start)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *end = start + size, *until = limit < size ? start + limit : end;
    for (const uint8_t *at = start, *after; good && at < until && (at = memchr(at, '<', (size_t)(until - at)));)
        if ((after = hidden_until(at, until, end))) {
            good = add(&spans, at - start) && add(&spans, after - start);
            at = after;
        } else {
            at++;
        }
    Py_END_ALLOW_THREADS
    PyObject *result = good ? listed(&spans, 2) : PyErr_NoMemory();
    PyMem_RawFree(spans.values);
    return result;
}

typedef struct {
    const uint8_t *start, *at, *until, *end; /* until: where nothing is looked for any more */
    int depth, name[MOST_OPEN];
    int64_t tag[MOST_OPEN][2]; /* where the tag that opened it begins and ends */
} Walk;

static void close_element(Walk *w, int name, int most)
{
    for (int back = 1; back <= most && back <= w->depth; back++)
        if (w->name[w->depth - back] == name) {
            w->depth -= back;
            return;
        }
}

/* The tag with the `<` at w->at, if it is one; w->at behind what was read. */
static void read_tag(Walk *w)
{
    const uint8_t *begin = w->at++;
    const int closes = w->at < w->end && *w->at == '/';
    const int name = name_at(w->at + closes, w->end, HOLDERS, HOLDER_NAMES);
    if (name < 0)
        return;
    const uint8_t *at = w->at + closes + HOLDERS[name].size;
    while (at < w->end && *at != '<' && *at != '>')
        at++;
    w->at = at;
    if (at == w->end || *at == '<')
        return;
    w->at = at + 1;
    if (closes) {
        close_element(w, name, MOST_CLOSED);
    } else if (w->depth < MOST_OPEN && at[-1] != '/') {
        if (name == PARAGRAPH)
            close_element(w, PARAGRAPH, 1);
        w->name[w->depth] = name;
        w->tag[w->depth][0] = begin - w->start, w->tag[w->depth][1] = at + 1 - w->start;
        w->depth++;
    }
}

/* On to the first tag at `place` or behind it. */
static void walk(Walk *w, const uint8_t *place)
{
    while (w->at < place && (w->at = memchr(w->at, '<', (size_t)(w->end - w->at))) && w->at < place) {
        const uint8_t *after = hidden_until(w->at, w->until, w->end);
        if (after)
            w->at = after;
        else
            read_tag(w);
    }
    if (!w->at)
        w->at = w->end;
}

/* open_tags(page, places): for each of ascending places the tags of the elements that are open there, outermost first. */
static PyObject *open_tags(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"places", INT64, 0}};
    PyObject *page, *given, *result = NULL;
    Py_ssize_t size;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &page, &given) || take_arrays(arrays, &given, &view, 1) < 0)
        return NULL;
    Walk *w = PyMem_RawCalloc(1, sizeof *w);
    const uint8_t *start = page_bytes(page, "page", &size);
    const int64_t *place = view.buf;
    const Py_ssize_t count = view.len / 8;
    if (!w)
        PyErr_NoMemory();
    if (!w || !start)
        goto done;
    for (Py_ssize_t i = 0; i < count; i++)
        if (place[i] < (i ? place[i - 1] : 0) || place[i] > size) {
            PyErr_Format(PyExc_ValueError, "places: ascending values from 0 to %zd are needed", size);
            goto done;
        }
    w->start = w->at = start, w->end = start + size;
    w->until = start + (count ? place[count - 1] : 0);
    result = PyList_New(0);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        Py_BEGIN_ALLOW_THREADS
        walk(w, start + place[i]);
        Py_END_ALLOW_THREADS
        const Numbers stack = {&w->tag[0][0], 2 * (size_t)w->depth, 0};
        PyObject *open = listed(&stack, 2);
        if (!open || PyList_Append(result, open) < 0)
            Py_CLEAR(result);
        Py_XDECREF(open);
    }
done:
    PyMem_RawFree(w);
    release_arrays(&view, 1);
    return result;
}

static PyMethodDef methods[] = {
    {"places", places, METH_VARARGS, "places(page, words, until, any_case, most) -> of each word in turn its places"},
    {"hidden", hidden, METH_VARARGS, "hidden(page, until) -> (begin, end) of comments, scripts, styles, templates"},
    {"open_tags", open_tags, METH_VARARGS, "open_tags(page, places) -> for each place (begin, end) of the tags open there"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    (void)module;
    for (size_t i = 0; i < sizeof COMMON - 1; i++)
        commonness[(uint8_t)COMMON[i]] = (uint8_t)(sizeof COMMON - 1 - i);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "markup", "Words and tags of a page.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_markup(void) { return PyModuleDef_Init(&module); }
