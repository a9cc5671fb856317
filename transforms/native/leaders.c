/* Leader clustering inside groups of MinHash rows, never quadratic.
 *
 * Rows are sorted by (group, rank). A member is compared with the first `always` leaders of its group, and with later
 * leaders only where the two share a sub-band: 4 neighbouring values. Each sub-band key keeps the first WAYS leaders
 * that have it, so a member costs at most `always` + subbands * WAYS comparisons however large the group is.
 * A protected row leads whatever it resembles, and is compared with nothing before it: protected rows sort first.
 * transforms/near_duplicates.py and transforms/verify_removals.py document the two uses. The GIL is released. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#define WITH_POPCNT __attribute__((target_clones("popcnt", "default")))
#else
#define VECTORISED
#define WITH_POPCNT
#endif

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
    uint32_t *table; /* [subbands << bits][WAYS]: 1 + position in the group of a leader, 0 when free */
    int bits;
    uint32_t *leaders; /* positions in the group of the first `always` leaders */
    uint32_t count;    /* leaders of this group so far, indexed ones included */
    uint32_t *seen;    /* position -> 1 + the member that was last compared with it */
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

static uint32_t similarity(const Search *s, size_t first, uint32_t x, uint32_t y)
{
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

static void lead(Search *s, size_t first, uint32_t member, int indexed)
{
    if (s->count++ < s->always) {
        s->leaders[s->count - 1] = member;
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

/* Empties the index for a group of `size`; it is as large as the group needs, so small groups stay cheap. */
static void restart(Search *s, size_t size)
{
    s->count = 0;
    s->bits = index_bits(size);
    if (size > s->always) {
        memset(s->table, 0, (s->subbands << s->bits) * WAYS * sizeof(uint32_t));
        memset(s->seen, 0, size * sizeof(uint32_t));
    }
}

static uint32_t find(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

static int join(const Search *s, size_t first, uint32_t member, uint32_t leader, uint32_t *parent, uint32_t **links)
{
    uint32_t x = find(parent, member), y = find(parent, leader);
    if (x == y)
        return 1;
    if (similarity(s, first, member, leader) < s->minimum)
        return 0;
    parent[x > y ? x : y] = x > y ? y : x;
    *(*links)++ = (uint32_t)first + member;
    *(*links)++ = (uint32_t)first + leader;
    return 1;
}

/* Writes pairs that join what is similar in one group: at most size - 1 of them. A protected row leads in a large group
 * too, so that what resembles it alone still finds it; two protected rows are not compared. */
static void link_group(Search *s, size_t first, uint32_t size, uint32_t *parent, uint32_t **links)
{
    const int indexed = size > s->always;
    restart(s, size);
    for (uint32_t i = 0; i < size; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t nearby = s->count < s->always ? s->count : s->always;
        int joined = 0;
        if (is_protected(s, first + i)) {
            lead(s, first, i, indexed);
            continue;
        }
        for (uint32_t l = 0; l < nearby; l++)
            joined |= join(s, first, i, s->leaders[l], parent, links);
        if (s->count > s->always)
            for (size_t b = 0; b < s->subbands; b++) {
                const uint32_t *ways = slot(s, first, i, b);
                for (int w = 0; w < WAYS && ways[w]; w++)
                    if (s->seen[ways[w] - 1] != i + 1) {
                        s->seen[ways[w] - 1] = i + 1;
                        joined |= join(s, first, i, ways[w] - 1, parent, links);
                    }
            }
        if (!joined || !indexed) /* in a small group everybody leads: every pair is tried */
            lead(s, first, i, indexed);
    }
}

typedef struct {
    uint32_t leader, equal, score; /* score: equal values, but at most `certain`; 0 before one is similar enough */
} Choice;

/* Takes `candidate` when it scores higher, or as high and comes earlier. */
static void consider(const Search *s, size_t first, uint32_t member, uint32_t candidate, Choice *choice)
{
    const uint32_t equal = similarity(s, first, member, candidate);
    const uint32_t score = equal < s->certain ? equal : s->certain;
    if (equal < s->minimum || score < choice->score || (score == choice->score && candidate > choice->leader))
        return;
    *choice = (Choice){candidate, equal, score};
}

/* Gives every member of one group its leader, or itself: the first in order with at least `certain` equal values, else
 * the one with the most, if these are at least `minimum`. */
static void assign_group(Search *s, size_t first, uint32_t size, uint32_t *leader, uint32_t *matches)
{
    const int indexed = size > s->always;
    restart(s, size);
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t nearby = s->count < s->always ? s->count : s->always;
        const int open = !is_protected(s, first + i);
        Choice choice = {i, (uint32_t)s->permutations, 0};
        for (uint32_t l = 0; open && l < nearby && choice.score < s->certain; l++)
            consider(s, first, i, s->leaders[l], &choice);
        if (open && choice.score < s->certain && s->count > s->always)
            for (size_t b = 0; b < s->subbands; b++) {
                const uint32_t *ways = slot(s, first, i, b);
                for (int w = 0; w < WAYS && ways[w]; w++) {
                    uint32_t candidate = ways[w] - 1;
                    if (s->seen[candidate] == i + 1 || (choice.score == s->certain && candidate > choice.leader))
                        continue;
                    s->seen[candidate] = i + 1;
                    consider(s, first, i, candidate, &choice);
                }
            }
        leader[first + i] = (uint32_t)first + choice.leader;
        matches[first + i] = choice.equal;
        if (choice.leader == i)
            lead(s, first, i, indexed);
    }
}

/* Checks shapes, sizes the scratch space for the largest group. 0 on success. */
static int open_search(Search *s, const Py_buffer *rows, const Py_buffer *starts, Py_ssize_t permutations,
                       Py_ssize_t minimum, Py_ssize_t certain, Py_ssize_t always, const Py_buffer *protect, int sketch,
                       size_t *largest)
{
    if (permutations < 1 || permutations > 1 << 20 || minimum < 1 || certain < minimum || certain > permutations ||
        always < 1 || always > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "permutations, minimum, certain or always out of range");
        return -1;
    }
    s->permutations = (size_t)permutations;
    s->row_bytes = sketch ? (s->permutations + 15) / 16 * 8 : 4 * s->permutations;
    s->padding = sketch ? 2 * s->row_bytes - s->permutations : 0;
    s->matches = sketch ? equal_nibbles : equal_values;
    s->rows = rows->buf;
    s->minimum = (uint32_t)minimum;
    s->certain = (uint32_t)certain;
    s->protect = protect->buf;
    s->always = (uint32_t)always;
    s->subbands = s->permutations / SUB_VALUES < MAX_SUBBANDS ? s->permutations / SUB_VALUES : MAX_SUBBANDS;
    s->value_bytes = sketch ? SUB_VALUES / 2 : SUB_VALUES * 4;
    const int64_t *bounds = starts->buf;
    const size_t groups = (size_t)starts->len / 8;
    const size_t total = (size_t)rows->len / s->row_bytes;
    *largest = 0;
    if ((uintptr_t)rows->buf % 4 || (uintptr_t)starts->buf % 8) {
        PyErr_SetString(PyExc_ValueError, "rows and starts: aligned buffers are needed");
        return -1;
    }
    if (starts->len % 8 || groups < 1 || (size_t)rows->len % s->row_bytes || total >= UINT32_MAX || bounds[0] != 0 ||
        bounds[groups - 1] != (int64_t)total) {
        PyErr_SetString(PyExc_ValueError, "starts: int64 from 0 to the number of rows is needed, at most 2^32 - 2 rows");
        return -1;
    }
    if (protect->buf && (size_t)protect->len != total) {
        PyErr_SetString(PyExc_ValueError, "protected: one byte per row is needed");
        return -1;
    }
    for (size_t g = 1; g < groups; g++) {
        if (bounds[g] < bounds[g - 1]) {
            PyErr_SetString(PyExc_ValueError, "starts: ascending values are needed");
            return -1;
        }
        if ((size_t)(bounds[g] - bounds[g - 1]) > *largest)
            *largest = (size_t)(bounds[g] - bounds[g - 1]);
    }
    if (*largest > s->always) {
        s->table = malloc(((s->subbands << index_bits(*largest)) + 1) * WAYS * sizeof(uint32_t));
        s->seen = malloc(*largest * sizeof(uint32_t));
    }
    s->leaders = malloc(s->always * sizeof(uint32_t));
    if (!s->leaders || (*largest > s->always && (!s->table || !s->seen))) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void close_search(Search *s)
{
    free(s->table);
    free(s->seen);
    free(s->leaders);
}

/* link(sketches, starts, permutations, minimum, always, protected=none) -> bytes: pairs of uint32 row numbers. */
static PyObject *link_rows(PyObject *module, PyObject *args)
{
    Py_buffer rows = {0}, starts = {0}, protect = {0};
    Py_ssize_t permutations, minimum, always;
    PyObject *result = NULL;
    uint32_t *parent = NULL, *links = NULL, *end;
    Search s = {0};
    size_t largest;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnn|y*", &rows, &starts, &permutations, &minimum, &always, &protect))
        return NULL;
    if (open_search(&s, &rows, &starts, permutations, minimum, minimum, always, &protect, 1, &largest) < 0)
        goto done;
    parent = malloc((largest + 1) * sizeof(uint32_t));
    links = end = malloc(((size_t)rows.len / s.row_bytes + 1) * 2 * sizeof(uint32_t));
    if (!parent || !links) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const int64_t *bounds = starts.buf;
    for (Py_ssize_t g = 0; g + 1 < starts.len / 8; g++)
        link_group(&s, (size_t)bounds[g], (uint32_t)(bounds[g + 1] - bounds[g]), parent, &end);
    Py_END_ALLOW_THREADS
    result = PyBytes_FromStringAndSize((const char *)links, (char *)end - (char *)links);
done:
    free(parent);
    free(links);
    close_search(&s);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&protect);
    return result;
}

/* assign(signatures, starts, permutations, minimum, certain, always, protected, leader, matches): fills two uint32
 * arrays, one per row. */
static PyObject *assign(PyObject *module, PyObject *args)
{
    Py_buffer rows = {0}, starts = {0}, protect = {0}, leader = {0}, matches = {0};
    Py_ssize_t permutations, minimum, certain, always;
    PyObject *result = NULL;
    Search s = {0};
    size_t largest;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnnny*w*w*", &rows, &starts, &permutations, &minimum, &certain, &always, &protect,
                          &leader, &matches))
        return NULL;
    if (open_search(&s, &rows, &starts, permutations, minimum, certain, always, &protect, 0, &largest) < 0)
        goto done;
    if (leader.len != matches.len || leader.len / 4 != rows.len / (Py_ssize_t)s.row_bytes || leader.len % 4 ||
        ((uintptr_t)leader.buf | (uintptr_t)matches.buf) % 4) {
        PyErr_SetString(PyExc_ValueError, "leader and matches: one uint32 per row is needed, aligned");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const int64_t *bounds = starts.buf;
    for (Py_ssize_t g = 0; g + 1 < starts.len / 8; g++)
        assign_group(&s, (size_t)bounds[g], (uint32_t)(bounds[g + 1] - bounds[g]), leader.buf, matches.buf);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    close_search(&s);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&protect);
    PyBuffer_Release(&leader);
    PyBuffer_Release(&matches);
    return result;
}

static PyMethodDef methods[] = {
    {"link", link_rows, METH_VARARGS,
     "link(sketches, starts, permutations, minimum, always, protected=none) -> bytes of uint32 pairs"},
    {"assign", assign, METH_VARARGS,
     "assign(signatures, starts, permutations, minimum, certain, always, protected, leader, matches) -> None"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "leaders", "Leader clustering of MinHash rows.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_leaders(void) { return PyModuleDef_Init(&module); }
