/* Leader clustering inside groups of sets by their exact Jaccard similarity.
 *
 * A set is a run of strictly ascending uint32. Three exact tests come before a pair costs time: the sizes, a bitmap of
 * BITMAP_BITS parities (sets whose bitmaps differ in d bits differ in at least d elements), and while both are merged,
 * what is left of them. transforms/exact_jaccard.py documents the use. The GIL is released. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define WITH_POPCNT __attribute__((target_clones("popcnt", "default")))
#else
#define WITH_POPCNT
#endif

#define BITMAP_BITS 4096
#define BITMAP_WORDS (BITMAP_BITS / 64)
#define STRIDE 64 /* steps of a merge between two looks at what is left */

typedef struct {
    const uint32_t *values;
    size_t size;
    const uint64_t *bitmap;
} Set;

static void fill_bitmap(const uint32_t *values, size_t size, uint64_t *bitmap)
{
    memset(bitmap, 0, BITMAP_WORDS * sizeof(uint64_t));
    for (size_t i = 0; i < size; i++)
        bitmap[values[i] % BITMAP_WORDS] ^= (uint64_t)1 << (values[i] >> 26);
}

WITH_POPCNT static size_t different_bits(const uint64_t *x, const uint64_t *y)
{
    size_t different = 0;
    for (size_t i = 0; i < BITMAP_WORDS; i++)
        different += (size_t)__builtin_popcountll(x[i] ^ y[i]);
    return different;
}

/* Common values of two sets; stops early, with less than `needed`, when `needed` can no longer be reached. */
static size_t intersect(const Set *a, const Set *b, size_t needed)
{
    const uint32_t *x = a->values, *y = b->values;
    size_t i = 0, j = 0, shared = 0;
    while (i < a->size && j < b->size) {
        const size_t left = a->size - i < b->size - j ? a->size - i : b->size - j;
        if (shared + left < needed)
            break;
        for (size_t step = left < STRIDE ? left : STRIDE; step; step--) { /* a step moves each by one at most */
            const uint32_t p = x[i], q = y[j];
            shared += p == q;
            i += p <= q;
            j += q <= p;
        }
    }
    return shared;
}

/* Whether two sets are as similar as the threshold; two empty ones are. Fills `shared` if so. */
static int similar(const Set *a, const Set *b, double threshold, uint32_t *shared)
{
    const double both = (double)a->size + (double)b->size;
    /* shared >= threshold * (both - shared), a little lower because of rounding; the quotient decides below */
    const double least = ceil((threshold * both - 1e-6) / (1 + threshold));
    const size_t needed = least > 0 ? (size_t)least : 0;
    const size_t smaller = a->size < b->size ? a->size : b->size;
    *shared = 0;
    if (both == 0)
        return 1;
    if (smaller < needed || a->size + b->size < 2 * needed + different_bits(a->bitmap, b->bitmap))
        return 0;
    *shared = (uint32_t)intersect(a, b, needed);
    return *shared / (both - *shared) >= threshold;
}

/* cluster(values, offsets, starts, threshold, leader, shared): fills two uint32 arrays, one per set. */
static PyObject *cluster(PyObject *module, PyObject *args)
{
    Py_buffer values = {0}, offsets = {0}, starts = {0}, leader = {0}, shared = {0};
    double threshold;
    PyObject *result = NULL;
    uint64_t *bitmaps = NULL;
    uint32_t *leads = NULL;
    size_t largest = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*dw*w*", &values, &offsets, &starts, &threshold, &leader, &shared))
        return NULL;
    const int64_t *offset = offsets.buf, *start = starts.buf;
    const Py_ssize_t sets = offsets.len / 8 - 1, groups = starts.len / 8 - 1;
    if (!(threshold > 0 && threshold <= 1)) {
        PyErr_SetString(PyExc_ValueError, "threshold: a number above 0 and up to 1 is allowed");
        goto done;
    }
    if (offsets.len % 8 || starts.len % 8 || sets < 0 || groups < 0 || values.len % 4 ||
        leader.len != 4 * sets || shared.len != 4 * sets ||
        ((uintptr_t)values.buf | (uintptr_t)leader.buf | (uintptr_t)shared.buf) % 4 ||
        ((uintptr_t)offsets.buf | (uintptr_t)starts.buf) % 8) {
        PyErr_SetString(PyExc_ValueError, "aligned uint32 values, int64 bounds and one uint32 per set are needed");
        goto done;
    }
    int ascending = offset[0] == 0 && offset[sets] == values.len / 4 && start[0] == 0 && start[groups] == sets;
    for (Py_ssize_t i = 0; ascending && i < sets; i++) /* none below 0, so their differences do not overflow */
        ascending = offset[i] <= offset[i + 1] && offset[i + 1] - offset[i] < UINT32_MAX;
    for (Py_ssize_t g = 0; ascending && g < groups; g++) {
        ascending = start[g] <= start[g + 1];
        if (ascending && (size_t)(start[g + 1] - start[g]) > largest)
            largest = (size_t)(start[g + 1] - start[g]);
    }
    if (!ascending) {
        PyErr_SetString(PyExc_ValueError, "offsets and starts: ascending values from 0 to the end are needed");
        goto done;
    }
    bitmaps = malloc((largest + 1) * BITMAP_WORDS * sizeof(uint64_t));
    leads = malloc((largest + 1) * sizeof(uint32_t));
    if (!bitmaps || !leads) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    uint32_t *leader_of = leader.buf, *shared_of = shared.buf;
    for (Py_ssize_t g = 0; g < groups; g++) {
        size_t count = 0;
        for (int64_t i = start[g]; i < start[g + 1]; i++) {
            uint64_t *bitmap = bitmaps + count * BITMAP_WORDS; /* stays there if the set leads */
            const Set set = {(const uint32_t *)values.buf + offset[i], (size_t)(offset[i + 1] - offset[i]), bitmap};
            fill_bitmap(set.values, set.size, bitmap);
            leader_of[i] = (uint32_t)i;
            shared_of[i] = (uint32_t)set.size;
            for (size_t l = 0; l < count; l++) {
                const int64_t *at = offset + leads[l];
                const Set other = {(const uint32_t *)values.buf + at[0], (size_t)(at[1] - at[0]),
                                   bitmaps + l * BITMAP_WORDS};
                uint32_t equal;
                if (similar(&set, &other, threshold, &equal)) {
                    leader_of[i] = leads[l];
                    shared_of[i] = equal;
                    break;
                }
            }
            if (leader_of[i] == (uint32_t)i)
                leads[count++] = (uint32_t)i;
        }
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    free(bitmaps);
    free(leads);
    PyBuffer_Release(&values);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&leader);
    PyBuffer_Release(&shared);
    return result;
}

static PyMethodDef methods[] = {
    {"cluster", cluster, METH_VARARGS, "cluster(values, offsets, starts, threshold, leader, shared) -> None"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "jaccard", "Leader clustering of sets.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_jaccard(void) { return PyModuleDef_Init(&module); }
