/* Clusters inside groups of MinHash rows, never quadratic: a row joins a cluster representative that resembles it, or
 * becomes one.
 *
 * Rows are sorted by (group, rank). A member is compared with the first `always` representatives of its group, and with
 * later ones only where the two share a sub-band: 4 neighbouring values. Each slot of the index keeps the first WAYS
 * representatives that come to it. A protected row represents whatever it resembles, and is compared with nothing
 * before it: protected rows sort first. A group that is given piece by piece has the same clusters if each piece begins
 * with the rows that were `held` by the one before, protected, and `whole` says how large the group is. transforms/dedup/near_duplicates.py and transforms/dedup/verify_similarity.py document the
 * two uses.
 *
 * Cost: a member is compared with at most `always` + subbands * WAYS others, however large the group is and whatever
 * its values are: slots are never probed further, so values chosen to meet in one cost nothing. They hide
 * representatives from each other at most, and the slots' hash is fixed because who is compared decides the result.
 * Memory: up to 32 MiB for the index of a large group, 8 bytes per member. Safety: arguments are checked at entry;
 * values may be any. The GIL is released. */

#include <stdlib.h>

#include "kernel.h"

#define SUB_VALUES 4 /* permutations in a sub-band: found with probability 1 - (1 - J^4)^28 at 112 permutations */
#define MAX_SUBBANDS 32
#define WAYS 4
#define MIN_BITS 6
#define MAX_BITS 16

typedef struct {
    const uint8_t *rows;
    size_t row_bytes, permutations, padding; /* padding: nibbles behind the last permutation, always equal */
    size_t (*matches)(const uint8_t *x, const uint8_t *y, size_t row_bytes);
    size_t value_bytes; /* bytes of SUB_VALUES values */
    uint32_t minimum, certain, always;
    const uint8_t *protect; /* one byte per row, or NULL */
    size_t subbands;
    uint32_t *table; /* [subbands << bits][WAYS]: 1 + position in the group of a representative, 0 when free */
    int bits;
    uint32_t *representatives; /* positions in the group of the first `always` ones */
    uint32_t count;            /* representatives of this group so far, indexed ones included */
    uint32_t *seen;            /* position -> 1 + the member that was last compared with it */
    uint64_t comparisons;
    size_t whole;  /* rows of the group that a piece belongs to, at least; 0 where groups are whole */
    uint8_t *held; /* one byte per row: 1 where later rows of its group may be compared with it; or NULL */
} Search;

/* Equal 4-bit values of two sketches; row_bytes is a multiple of 8. */
WITH_POPCNT static size_t equal_nibbles(const uint8_t *x, const uint8_t *y, size_t row_bytes)
{
    size_t different = 0;
    for (size_t i = 0; i < row_bytes; i += 8) {
        uint64_t p, q;
        memcpy(&p, x + i, 8);
        memcpy(&q, y + i, 8);
        p ^= q;
        p |= p >> 2;
        p |= p >> 1;
        different += (size_t)__builtin_popcountll(p & 0x1111111111111111u);
    }
    return 2 * row_bytes - different;
}

VECTORISED static size_t equal_values(const uint8_t *x, const uint8_t *y, size_t row_bytes)
{
    const uint32_t *p = (const uint32_t *)(const void *)x, *q = (const uint32_t *)(const void *)y;
    uint32_t equal = 0;
    for (size_t i = 0; i < row_bytes / 4; i++)
        equal += p[i] == q[i];
    return equal;
}

static uint32_t similarity(Search *s, size_t first, uint32_t x, uint32_t y)
{
    s->comparisons++;
    const uint8_t *rows = s->rows + first * s->row_bytes;
    return (uint32_t)(s->matches(rows + x * s->row_bytes, rows + y * s->row_bytes, s->row_bytes) - s->padding);
}

static int is_protected(const Search *s, size_t row)
{
    return s->protect && s->protect[row];
}

static uint32_t *slot(const Search *s, size_t first, uint32_t member, size_t subband)
{
    const uint8_t *values = s->rows + (first + member) * s->row_bytes + subband * s->value_bytes;
    uint64_t key = 0, word;
    for (size_t i = 0; i < s->value_bytes; i += 8) {
        size_t size = s->value_bytes - i < 8 ? s->value_bytes - i : 8;
        word = 0;
        memcpy(&word, values + i, size);
        key = (key ^ word) * 0x9E3779B97F4A7C15u;
        key ^= key >> 32;
    }
    key *= 0xD1342543DE82EF95u;
    return s->table + (((subband << s->bits) + (size_t)(key >> (64 - s->bits))) * WAYS);
}

static void add_representative(Search *s, size_t first, uint32_t member, int indexed)
{
    if (s->count++ < s->always) {
        s->representatives[s->count - 1] = member;
        return;
    }
    for (size_t b = 0; indexed && b < s->subbands; b++) {
        uint32_t *ways = slot(s, first, member, b);
        for (int w = 0; w < WAYS; w++)
            if (!ways[w]) {
                ways[w] = member + 1;
                break;
            }
    }
}

static int index_bits(size_t size)
{
    int bits = MIN_BITS;
    while (bits < MAX_BITS && ((size_t)1 << bits) < size)
        bits++;
    return bits;
}

/* Empties the index for `size` rows of a group; it is as large as the group needs, so small groups stay cheap. Returns
 * whether it is used. */
static int restart(Search *s, size_t size)
{
    const size_t whole = size > s->whole ? size : s->whole;
    s->count = 0;
    s->bits = index_bits(whole);
    if (whole <= s->always)
        return 0;
    memset(s->table, 0, (s->subbands << s->bits) * WAYS * sizeof(uint32_t));
    memset(s->seen, 0, size * sizeof(uint32_t));
    return 1;
}

/* Marks the representatives of the group that starts at `first`, but for those that no slot of the index kept. */
static void mark_held(Search *s, size_t first, int indexed)
{
    if (!s->held)
        return;
    for (uint32_t l = 0; l < s->count && l < s->always; l++)
        s->held[first + s->representatives[l]] = 1;
    for (size_t i = 0; indexed && i < (s->subbands << s->bits) * WAYS; i++)
        if (s->table[i])
            s->held[first + s->table[i] - 1] = 1;
}

static uint32_t find(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

static int join(Search *s, size_t first, uint32_t member, uint32_t other, uint32_t *parent, uint32_t **links)
{
    uint32_t x = find(parent, member), y = find(parent, other);
    if (x == y)
        return 1;
    if (similarity(s, first, member, other) < s->minimum)
        return 0;
    parent[x > y ? x : y] = x > y ? y : x;
    *(*links)++ = (uint32_t)first + member;
    *(*links)++ = (uint32_t)first + other;
    return 1;
}

/* Writes pairs that join what is similar in one group: at most size - 1 of them. A protected row is a representative in
 * a large group too, so that what resembles it alone still finds it; two protected rows are not compared. */
static void link_group(Search *s, size_t first, uint32_t size, uint32_t *parent, uint32_t **links)
{
    const int indexed = restart(s, size);
    for (uint32_t i = 0; i < size; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t nearby = s->count < s->always ? s->count : s->always;
        int joined = 0;
        if (is_protected(s, first + i)) {
            add_representative(s, first, i, indexed);
            continue;
        }
        for (uint32_t l = 0; l < nearby; l++)
            joined |= join(s, first, i, s->representatives[l], parent, links);
        if (s->count > s->always)
            for (size_t b = 0; b < s->subbands; b++) {
                const uint32_t *ways = slot(s, first, i, b);
                for (int w = 0; w < WAYS && ways[w]; w++)
                    if (s->seen[ways[w] - 1] != i + 1) {
                        s->seen[ways[w] - 1] = i + 1;
                        joined |= join(s, first, i, ways[w] - 1, parent, links);
                    }
            }
        if (!joined || !indexed) /* in a small group everybody represents: every pair is tried */
            add_representative(s, first, i, indexed);
    }
    mark_held(s, first, indexed);
}

typedef struct {
    uint32_t representative, equal, score; /* score: equal values, `certain` at most; 0 before one is similar enough */
} Choice;

/* Takes `candidate` when it scores higher, or as high and comes earlier. */
static void consider(Search *s, size_t first, uint32_t member, uint32_t candidate, Choice *choice)
{
    const uint32_t equal = similarity(s, first, member, candidate);
    const uint32_t score = equal < s->certain ? equal : s->certain;
    if (equal < s->minimum || score < choice->score || (score == choice->score && candidate > choice->representative))
        return;
    *choice = (Choice){candidate, equal, score};
}

/* Gives every member of one group its representative, or itself: the first in order with at least `certain` equal
 * values, else the one with the most, if these are at least `minimum`. */
static void assign_group(Search *s, size_t first, uint32_t size, uint32_t *representative, uint32_t *matches)
{
    const int indexed = restart(s, size);
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t nearby = s->count < s->always ? s->count : s->always;
        const int open = !is_protected(s, first + i);
        Choice choice = {i, (uint32_t)s->permutations, 0};
        for (uint32_t l = 0; open && l < nearby && choice.score < s->certain; l++)
            consider(s, first, i, s->representatives[l], &choice);
        if (open && choice.score < s->certain && s->count > s->always)
            for (size_t b = 0; b < s->subbands; b++) {
                const uint32_t *ways = slot(s, first, i, b);
                for (int w = 0; w < WAYS && ways[w]; w++) {
                    uint32_t candidate = ways[w] - 1;
                    if (s->seen[candidate] == i + 1
                        || (choice.score == s->certain && candidate > choice.representative))
                        continue;
                    s->seen[candidate] = i + 1;
                    consider(s, first, i, candidate, &choice);
                }
            }
        representative[first + i] = (uint32_t)first + choice.representative;
        matches[first + i] = choice.equal;
        if (choice.representative == i)
            add_representative(s, first, i, indexed);
    }
    mark_held(s, first, indexed);
}

typedef struct {
    int64_t permutations, minimum, certain, always, whole;
} Limits;

static uint64_t last_comparisons; /* of the last call, for tests; set under the GIL */

static int read_limits(PyObject *permutations, PyObject *minimum, PyObject *certain, PyObject *always, PyObject *whole,
                       Limits *limits)
{
    limits->whole = 0;
    if (read_integer(permutations, "permutations", 1, 1 << 20, &limits->permutations) < 0
        || read_integer(minimum, "minimum", 1, limits->permutations, &limits->minimum) < 0
        || read_integer(certain, "certain", limits->minimum, limits->permutations, &limits->certain) < 0
        || (whole && read_integer(whole, "whole", 0, UINT32_MAX, &limits->whole) < 0))
        return -1;
    return read_integer(always, "always", 1, 1 << 20, &limits->always);
}

/* Checks shapes, sizes the scratch space for the largest group. 0 on success. */
static int open_search(Search *s, const Py_buffer *rows, const Py_buffer *starts, const Py_buffer *protect,
                       const Py_buffer *held, const Limits *limits, int sketch, size_t *largest)
{
    s->permutations = (size_t)limits->permutations;
    s->row_bytes = sketch ? (s->permutations + 15) / 16 * 8 : 4 * s->permutations;
    s->padding = sketch ? 2 * s->row_bytes - s->permutations : 0;
    s->matches = sketch ? equal_nibbles : equal_values;
    s->rows = rows->buf;
    s->minimum = (uint32_t)limits->minimum;
    s->certain = (uint32_t)limits->certain;
    s->protect = protect->buf;
    s->held = held->buf;
    s->whole = (size_t)limits->whole;
    s->always = (uint32_t)limits->always;
    s->subbands = s->permutations / SUB_VALUES < MAX_SUBBANDS ? s->permutations / SUB_VALUES : MAX_SUBBANDS;
    s->value_bytes = sketch ? SUB_VALUES / 2 : SUB_VALUES * 4;
    const int64_t *bounds = starts->buf;
    const Py_ssize_t count = starts->len / 8;
    const size_t total = (size_t)rows->len / s->row_bytes;
    if ((size_t)rows->len % s->row_bytes || total >= UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "rows: %zd bytes given, at most 2^32 - 2 rows of %zu bytes are needed",
                     rows->len, s->row_bytes);
        return -1;
    }
    if (protect->obj && (size_t)protect->len != total) {
        PyErr_Format(PyExc_ValueError, "protected: %zd bytes given, one per row is needed, %zu", protect->len, total);
        return -1;
    }
    if (held->obj && (size_t)held->len != total) {
        PyErr_Format(PyExc_ValueError, "held: %zd bytes given, one per row is needed, %zu", held->len, total);
        return -1;
    }
    if (check_ascending("starts", bounds, count, (int64_t)total, (int64_t)total) < 0)
        return -1;
    *largest = 0;
    for (Py_ssize_t g = 1; g < count; g++)
        if ((size_t)(bounds[g] - bounds[g - 1]) > *largest)
            *largest = (size_t)(bounds[g] - bounds[g - 1]);
    const size_t whole = *largest > s->whole ? *largest : s->whole;
    if (whole > s->always) {
        s->table = malloc(((s->subbands << index_bits(whole)) + 1) * WAYS * sizeof(uint32_t));
        s->seen = malloc((*largest + 1) * sizeof(uint32_t));
    }
    s->representatives = malloc(s->always * sizeof(uint32_t));
    if (!s->representatives || (whole > s->always && (!s->table || !s->seen))) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void close_search(Search *s)
{
    free(s->table);
    free(s->seen);
    free(s->representatives);
}

/* link(sketches, starts, permutations, minimum, always, protected=none, whole=0, held=none) -> bytes: pairs of uint32 row
 * numbers. */
static PyObject *link_rows(PyObject *module, PyObject *args)
{
    enum { ROWS, STARTS, PROTECTED, HELD, BUFFERS };
    static const Array arrays[] = {
        {"sketches", FLAG, 0}, {"starts", INT64, 0}, {"protected", FLAG, OPTIONAL}, {"held", FLAG, WRITTEN | OPTIONAL},
    };
    PyObject *given[BUFFERS] = {NULL, NULL, Py_None, Py_None}, *permutations, *minimum, *always, *whole = NULL;
    PyObject *result = NULL;
    Py_buffer b[BUFFERS];
    Limits limits;
    uint32_t *parent = NULL, *links = NULL, *end;
    Search s = {0};
    size_t largest;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO|OOO", &given[ROWS], &given[STARTS], &permutations, &minimum, &always,
                          &given[PROTECTED], &whole, &given[HELD])
        || read_limits(permutations, minimum, minimum, always, whole, &limits) < 0
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    if (open_search(&s, &b[ROWS], &b[STARTS], &b[PROTECTED], &b[HELD], &limits, 1, &largest) < 0)
        goto done;
    parent = malloc((largest + 1) * sizeof(uint32_t));
    links = end = malloc(((size_t)b[ROWS].len / s.row_bytes + 1) * 2 * sizeof(uint32_t));
    if (!parent || !links) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const int64_t *bounds = b[STARTS].buf;
    for (Py_ssize_t g = 0; g + 1 < b[STARTS].len / 8; g++)
        link_group(&s, (size_t)bounds[g], (uint32_t)(bounds[g + 1] - bounds[g]), parent, &end);
    Py_END_ALLOW_THREADS
    last_comparisons = s.comparisons;
    result = PyBytes_FromStringAndSize((const char *)links, (char *)end - (char *)links);
done:
    free(parent);
    free(links);
    close_search(&s);
    release_arrays(b, BUFFERS);
    return result;
}

/* assign(signatures, starts, permutations, minimum, certain, always, protected, representative, matches, whole=0,
 * held=none): fills two uint32 arrays, one per row. */
static PyObject *assign(PyObject *module, PyObject *args)
{
    enum { ROWS, STARTS, PROTECTED, REPRESENTATIVE, MATCHES, HELD, BUFFERS };
    static const Array arrays[] = {
        {"signatures", UINT32, 0}, {"starts", INT64, 0}, {"protected", FLAG, 0}, {"representative", UINT32, WRITTEN},
        {"matches", UINT32, WRITTEN}, {"held", FLAG, WRITTEN | OPTIONAL},
    };
    PyObject *given[BUFFERS], *permutations, *minimum, *certain, *always, *whole = NULL, *result = NULL;
    Py_buffer b[BUFFERS];
    Limits limits;
    Search s = {0};
    size_t largest;
    (void)module;
    given[HELD] = Py_None;
    if (!PyArg_ParseTuple(args, "OOOOOOOOO|OO", &given[ROWS], &given[STARTS], &permutations, &minimum, &certain, &always,
                          &given[PROTECTED], &given[REPRESENTATIVE], &given[MATCHES], &whole, &given[HELD])
        || read_limits(permutations, minimum, certain, always, whole, &limits) < 0
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    if (open_search(&s, &b[ROWS], &b[STARTS], &b[PROTECTED], &b[HELD], &limits, 0, &largest) < 0)
        goto done;
    const Py_ssize_t total = b[ROWS].len / (Py_ssize_t)s.row_bytes;
    if (b[REPRESENTATIVE].len != 4 * total || b[MATCHES].len != 4 * total) {
        PyErr_Format(PyExc_ValueError, "representative and matches: one uint32 per row is needed, %zd", total);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const int64_t *bounds = b[STARTS].buf;
    for (Py_ssize_t g = 0; g + 1 < b[STARTS].len / 8; g++)
        assign_group(&s, (size_t)bounds[g], (uint32_t)(bounds[g + 1] - bounds[g]), b[REPRESENTATIVE].buf,
                     b[MATCHES].buf);
    Py_END_ALLOW_THREADS
    last_comparisons = s.comparisons;
    result = Py_NewRef(Py_None);
done:
    close_search(&s);
    release_arrays(b, BUFFERS);
    return result;
}

static PyObject *comparisons(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromUnsignedLongLong(last_comparisons);
}

static PyMethodDef methods[] = {
    {"link", link_rows, METH_VARARGS,
     "link(sketches, starts, permutations, minimum, always, protected=none, whole=0, held=none) -> bytes of uint32 pairs"},
    {"assign", assign, METH_VARARGS,
     "assign(signatures, starts, permutations, minimum, certain, always, protected, representative, matches, whole=0, "
     "held=none) -> None"},
    {"comparisons", comparisons, METH_NOARGS,
     "comparisons() -> int: pairs of rows that the last call of this process compared; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "clusters", "Clusters of MinHash rows.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_clusters(void) { return PyModuleDef_Init(&module); }
