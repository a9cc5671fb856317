/* Clusters inside groups of sets by their exact Jaccard similarity: each set joins the first representative of its
 * group that is similar enough, or becomes one.
 *
 * A set is a run of strictly ascending uint32. Three exact tests come before a pair costs time: the sizes, a bitmap of
 * BITMAP_BITS parities (sets whose bitmaps differ in d bits differ in at least d elements), and while both are merged,
 * what is left of them. transforms/exact_jaccard.py documents the use.
 *
 * Cost: one comparison of bitmaps per set and representative of its group, and a merge, linear in both sets, where they
 * may be similar. Which bit stands for a value is a keyed hash (include/keyed_hash.h), so that no text can choose
 * shingles that make bitmaps useless; a bitmap spares time and decides nothing. Memory: 512 bytes per set of the
 * largest group. Safety: arguments are checked at entry, bounds are ascending and within `values`; sets that do not
 * ascend give wrong counts and nothing worse. The GIL is released. */

#include <math.h>
#include <stdlib.h>

#include "keyed_hash.h"

#define BITMAP_BITS 4096
#define BITMAP_WORDS (BITMAP_BITS / 64)
#define BLOCK 256 /* values hashed at a time */
#define STRIDE 64 /* steps of a merge between two looks at what is left */

typedef struct {
    const uint32_t *values;
    size_t size;
    const uint64_t *bitmap;
} Set;

static HashKey bit_key; /* drawn when the module is loaded */
static size_t last_steps; /* of the last call's merges, for tests; set under the GIL */

/* 12 bits of a keyed bijection of 32 bits: two multiplications by odd numbers of the key, so that neither sums nor
 * differences of chosen values survive it. In blocks, since this way it takes vector registers. */
VECTORISED static void scatter(const uint32_t *restrict values, size_t size, uint32_t *restrict hashes, HashKey key)
{
    const uint32_t first = (uint32_t)key.b, second = (uint32_t)key.d;
    const uint32_t before = (uint32_t)key.a, between = (uint32_t)key.c;
    for (size_t i = 0; i < size; i++) {
        const uint32_t hash = (values[i] ^ before) * first;
        hashes[i] = (hash ^ hash >> 15 ^ between) * second >> 20; /* the best mixed bits */
    }
}

static void fill_bitmap(const uint32_t *values, size_t size, uint64_t *bitmap)
{
    uint32_t hashes[BLOCK];
    memset(bitmap, 0, BITMAP_WORDS * sizeof(uint64_t));
    for (size_t done = 0; done < size; done += BLOCK) {
        const size_t some = size - done < BLOCK ? size - done : BLOCK;
        scatter(values + done, some, hashes, bit_key);
        for (size_t i = 0; i < some; i++)
            bitmap[hashes[i] % BITMAP_WORDS] ^= (uint64_t)1 << (hashes[i] / BITMAP_WORDS);
    }
}

WITH_POPCNT static size_t different_bits(const uint64_t *x, const uint64_t *y)
{
    size_t different = 0;
    for (size_t i = 0; i < BITMAP_WORDS; i++)
        different += (size_t)__builtin_popcountll(x[i] ^ y[i]);
    return different;
}

/* Common values of two sets; stops early, with less than `needed`, when `needed` can no longer be reached. */
static size_t intersect(const Set *a, const Set *b, size_t needed, size_t *steps)
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
    *steps += i + j;
    return shared;
}

/* Whether two sets are as similar as the threshold; two empty ones are. Fills `shared` if so. */
static int similar(const Set *a, const Set *b, double threshold, uint32_t *shared, size_t *steps)
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
    *shared = (uint32_t)intersect(a, b, needed, steps);
    return *shared / (both - *shared) >= threshold;
}

/* The clusters of one group, sets `first` to before `stop`. `representatives` and `bitmaps` have room for each. */
static void cluster_group(const uint32_t *values, const int64_t *offsets, int64_t first, int64_t stop, double threshold,
                          uint32_t *representative, uint32_t *shared, uint32_t *representatives, uint64_t *bitmaps,
                          size_t *steps)
{
    size_t count = 0;
    for (int64_t i = first; i < stop; i++) {
        uint64_t *bitmap = bitmaps + count * BITMAP_WORDS; /* stays there if the set becomes a representative */
        const Set set = {values + offsets[i], (size_t)(offsets[i + 1] - offsets[i]), bitmap};
        size_t r = 0;
        fill_bitmap(set.values, set.size, bitmap);
        for (; r < count; r++) {
            const int64_t *at = offsets + representatives[r];
            const Set other = {values + at[0], (size_t)(at[1] - at[0]), bitmaps + r * BITMAP_WORDS};
            if (similar(&set, &other, threshold, &shared[i], steps))
                break;
        }
        if (r == count) {
            representatives[count++] = (uint32_t)i;
            shared[i] = (uint32_t)set.size;
        }
        representative[i] = representatives[r];
    }
}

/* cluster(values, offsets, starts, threshold, representative, shared): fills two uint32 arrays, one per set. */
static PyObject *cluster(PyObject *module, PyObject *args)
{
    enum { VALUES, OFFSETS, STARTS, REPRESENTATIVE, SHARED, BUFFERS };
    static const Array arrays[] = {
        {"values", UINT32, 0}, {"offsets", INT64, 0}, {"starts", INT64, 0}, {"representative", UINT32, WRITTEN},
        {"shared", UINT32, WRITTEN},
    };
    PyObject *given[BUFFERS], *result = NULL;
    Py_buffer b[BUFFERS];
    double threshold;
    uint64_t *bitmaps = NULL;
    uint32_t *representatives = NULL;
    size_t largest = 0, steps = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOdOO", &given[VALUES], &given[OFFSETS], &given[STARTS], &threshold,
                          &given[REPRESENTATIVE], &given[SHARED])
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const int64_t *offsets = b[OFFSETS].buf, *starts = b[STARTS].buf;
    const Py_ssize_t sets = b[OFFSETS].len / 8 - 1, groups = b[STARTS].len / 8 - 1;
    if (!(threshold > 0 && threshold <= 1)) {
        PyErr_SetString(PyExc_ValueError, "threshold: a number above 0 and up to 1 is allowed");
        goto done;
    }
    if (sets < 0 || groups < 0 || sets >= UINT32_MAX || b[REPRESENTATIVE].len != 4 * sets
        || b[SHARED].len != 4 * sets) {
        PyErr_SetString(PyExc_ValueError, "offsets and starts: int64 bounds, one more than sets or groups, and one "
                                          "uint32 per set in representative and shared are needed");
        goto done;
    }
    if (check_ascending("offsets", offsets, sets + 1, b[VALUES].len / 4, UINT32_MAX - 1) < 0
        || check_ascending("starts", starts, groups + 1, sets, sets) < 0)
        goto done;
    for (Py_ssize_t g = 0; g < groups; g++)
        if ((size_t)(starts[g + 1] - starts[g]) > largest)
            largest = (size_t)(starts[g + 1] - starts[g]);
    bitmaps = malloc((largest + 1) * BITMAP_WORDS * sizeof(uint64_t));
    representatives = malloc((largest + 1) * sizeof(uint32_t));
    if (!bitmaps || !representatives) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t g = 0; g < groups; g++)
        cluster_group(b[VALUES].buf, offsets, starts[g], starts[g + 1], threshold, b[REPRESENTATIVE].buf,
                      b[SHARED].buf, representatives, bitmaps, &steps);
    Py_END_ALLOW_THREADS
    last_steps = steps;
    result = Py_NewRef(Py_None);
done:
    free(bitmaps);
    free(representatives);
    release_arrays(b, BUFFERS);
    return result;
}

static PyObject *merge_steps(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromSize_t(last_steps);
}

static PyMethodDef methods[] = {
    {"cluster", cluster, METH_VARARGS, "cluster(values, offsets, starts, threshold, representative, shared) -> None"},
    {"merge_steps", merge_steps, METH_NOARGS,
     "merge_steps() -> int: values that the last cluster() of this process passed over in merges; for tests."},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *Py_UNUSED(module)) { return draw_key(&bit_key); }

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "jaccard", "Clusters of similar sets.", 0, methods, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_jaccard(void) { return PyModuleDef_Init(&module); }
