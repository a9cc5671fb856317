/* Gradient-boosted decision trees: grown from binned features, and applied to features.
 *
 * Trees are complete: every one has 2^depth leaves, and node i has the children 2i + 1 and 2i + 2, so applying one
 * takes depth comparisons without a branch. All sums are of integers and leaves hold integers (1/65536 of a logit), so
 * a model and its scores are the same bytes on every machine and for every batch, in any order. Method: Friedman 2001;
 * second-order gains with a regulariser as in XGBoost (Chen and Guestrin 2016); histograms as in LightGBM (Ke et al.
 * 2017), the larger of two children by subtraction.
 *
 * Cost: score: rows x trees x depth steps of about 1 ns. grow: rows x features x depth / 2 additions. Safety: arguments
 * are checked at entry, bins and the features of nodes too. The GIL is released. */
#include "trees_apply.h"
#include <stdlib.h>

enum { BINS = 64, ONE = 65536 };

/* e^-x for x >= 0, by halving x sixteen times: plain arithmetic, the same on every machine. */
static double exp_minus(double x)
{
    if (x > 40)
        return 0;
    const double y = -x / 65536;
    double e = 1 + y * (1 + y / 2 * (1 + y / 3));
    for (int i = 0; i < 16; i++)
        e *= e;
    return e;
}

static double sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + exp_minus(x));
    const double e = exp_minus(-x);
    return e / (1 + e);
}

static int32_t rounded(double x) { return (int32_t)(x < 0 ? x - 0.5 : x + 0.5); }

/* gradients(scores, targets, weights, out): of log loss. Targets and weights are in 1/1000; out: rows x 2, the first
 * and second derivative in 1/1000 of a weight of 1000. */
static PyObject *gradients(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"scores", INT32, 0}, {"targets", INT32, 0}, {"weights", INT32, 0},
                                   {"out", INT32, WRITTEN}};
    PyObject *given[4];
    Py_buffer views[4];
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &given[0], &given[1], &given[2], &given[3])
        || take_arrays(arrays, given, views, 4) < 0)
        return NULL;
    const Py_ssize_t rows = views[0].len / 4;
    PyObject *result = NULL;
    if (views[1].len / 4 != rows || views[2].len / 4 != rows || views[3].len / 4 != 2 * rows) {
        PyErr_SetString(PyExc_ValueError, "scores, targets, weights, out: arrays of one length are needed, out of two");
        goto done;
    }
    const int32_t *scores = views[0].buf, *targets = views[1].buf, *weights = views[2].buf;
    int32_t *out = views[3].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < rows; i++) {
        const double p = sigmoid((double)scores[i] / ONE), w = weights[i];
        out[2 * i] = rounded((p - targets[i] / 1000.0) * w);
        out[2 * i + 1] = rounded(p * (1 - p) * w) + (weights[i] > 0);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release_arrays(views, 4);
    return result;
}

/* probabilities(scores, out): in 1/1000. */
static PyObject *probabilities(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"scores", INT32, 0}, {"out", INT32, WRITTEN}};
    PyObject *given[2];
    Py_buffer views[2];
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &given[0], &given[1]) || take_arrays(arrays, given, views, 2) < 0)
        return NULL;
    PyObject *result = NULL;
    if (views[0].len == views[1].len) {
        const int32_t *scores = views[0].buf;
        int32_t *out = views[1].buf;
        for (Py_ssize_t i = 0; i < views[0].len / 4; i++)
            out[i] = rounded(1000 * sigmoid((double)scores[i] / ONE));
        result = Py_NewRef(Py_None);
    } else {
        PyErr_SetString(PyExc_ValueError, "scores, out: arrays of one length are needed");
    }
    release_arrays(views, 2);
    return result;
}

typedef struct {
    const uint8_t *bins;
    const int32_t *gradients, *features;
    Py_ssize_t width, chosen;
    double penalty, least, rate;
    int64_t *histograms; /* of the nodes of two levels: nodes x chosen features x BINS of (gradient << 32) + hessian */
} Grower;

static void fill(const Grower *g, const int32_t *rows, Py_ssize_t count, int64_t *histogram)
{
    memset(histogram, 0, (size_t)g->chosen * BINS * sizeof *histogram);
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint8_t *bins = g->bins + (Py_ssize_t)rows[i] * g->width;
        const int64_t both = (int64_t)g->gradients[2 * rows[i]] * ((int64_t)1 << 32) + g->gradients[2 * rows[i] + 1];
        for (Py_ssize_t f = 0; f < g->chosen; f++)
            histogram[f * BINS + bins[g->features[f]]] += both;
    }
}

INLINE void halves(int64_t both, double *gradient, double *hessian)
{
    const int32_t low = (int32_t)(uint32_t)both;
    *hessian = low;
    *gradient = (double)((both - low) / ((int64_t)1 << 32));
}

/* The best split of a node; its feature (a place in `features`) and last bin to the left, or -1. */
static int best_split(const Grower *g, const int64_t *histogram, int *bin)
{
    double G, H, best = 1e-9;
    int chosen = -1;
    int64_t all = 0;
    for (int b = 0; b < BINS; b++)
        all += histogram[b];
    halves(all, &G, &H);
    const double before = G * G / (H + g->penalty);
    for (Py_ssize_t f = 0; f < g->chosen; f++) {
        int64_t left = 0;
        for (int b = 0; b + 1 < BINS; b++) {
            double gl, hl;
            if (!histogram[f * BINS + b])
                continue;
            left += histogram[f * BINS + b];
            halves(left, &gl, &hl);
            if (hl < g->least || H - hl < g->least)
                continue;
            const double gain = gl * gl / (hl + g->penalty) + (G - gl) * (G - gl) / (H - hl + g->penalty) - before;
            if (gain > best) {
                best = gain;
                chosen = (int)f;
                *bin = b;
            }
        }
    }
    return chosen;
}

/* Puts the rows that go left first; returns how many. Stable. */
static Py_ssize_t divide(const Grower *g, int32_t *rows, Py_ssize_t count, int feature, int bin, int32_t *spare)
{
    Py_ssize_t left = 0, right = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (g->bins[(Py_ssize_t)rows[i] * g->width + feature] <= bin)
            rows[left++] = rows[i];
        else
            spare[right++] = rows[i];
    memcpy(rows + left, spare, (size_t)right * sizeof *rows);
    return left;
}

static int grow_tree(Grower *g, int32_t *rows, Py_ssize_t count, int depth, int32_t *splits, int32_t *leaves)
{
    const size_t one = (size_t)g->chosen * BINS;
    const int width = 1 << depth;
    int64_t *now = malloc(one * (size_t)width * sizeof *now), *next = malloc(one * (size_t)width * sizeof *now);
    int32_t *spare = malloc((size_t)(count + 1) * sizeof *spare);
    Py_ssize_t starts[(1 << MOST_DEPTH) + 1] = {0, count}, later[(1 << MOST_DEPTH) + 1];
    if (!now || !next || !spare) {
        free(now), free(next), free(spare);
        return 0;
    }
    fill(g, rows, count, now);
    for (int level = 0; level < depth; level++) {
        const int nodes = 1 << level, last = level + 1 == depth;
        later[0] = 0;
        for (int node = 0; node < nodes; node++) {
            const Py_ssize_t start = starts[node], size = starts[node + 1] - start;
            int bin = BINS;
            const int f = size ? best_split(g, now + one * (size_t)node, &bin) : -1;
            int32_t *split = splits + 2 * (nodes - 1 + node);
            split[0] = f < 0 ? 0 : g->features[f];
            split[1] = f < 0 ? BINS : bin;
            const Py_ssize_t left = f < 0 ? size : divide(g, rows + start, size, split[0], bin, spare);
            later[2 * node + 1] = start + left;
            later[2 * node + 2] = start + size;
            if (last)
                continue;
            int64_t *children[2] = {next + one * (size_t)(2 * node), next + one * (size_t)(2 * node + 1)};
            const int small = left > size - left;
            fill(g, rows + start + (small ? left : 0), small ? size - left : left, children[small]);
            for (size_t i = 0; i < one; i++)
                children[!small][i] = now[one * (size_t)node + i] - children[small][i];
        }
        memcpy(starts, later, sizeof later);
        int64_t *swap = now;
        now = next;
        next = swap;
    }
    for (int leaf = 0; leaf < width; leaf++) {
        double G = 0, H = 0;
        for (Py_ssize_t i = starts[leaf]; i < starts[leaf + 1]; i++) {
            G += g->gradients[2 * rows[i]];
            H += g->gradients[2 * rows[i] + 1];
        }
        leaves[leaf] = rounded(-g->rate * G / (H + g->penalty) * ONE);
    }
    free(now), free(next), free(spare);
    return 1;
}

/* grow(bins, width, gradients, rows, features, depth, penalty, least, rate, splits, leaves): one tree. rows are put
 * into another order. splits: (feature, last bin to the left) of each node. */
static PyObject *grow(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"bins", FLAG, 0}, {"gradients", INT32, 0}, {"rows", INT32, WRITTEN},
                                   {"features", INT32, 0}, {"splits", INT32, WRITTEN}, {"leaves", INT32, WRITTEN}};
    PyObject *given[6], *result = NULL;
    Py_buffer views[6];
    Py_ssize_t width;
    int depth;
    Grower g;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOOOidddOO", &given[0], &width, &given[1], &given[2], &given[3], &depth, &g.penalty,
                          &g.least, &g.rate, &given[4], &given[5])
        || take_arrays(arrays, given, views, 6) < 0)
        return NULL;
    const Py_ssize_t count = views[2].len / 4;
    g.bins = views[0].buf, g.gradients = views[1].buf, g.features = views[3].buf;
    g.width = width, g.chosen = views[3].len / 4;
    if (check_range("width", width, 1, MOST_FEATURES) < 0 || check_range("depth", depth, 1, MOST_DEPTH) < 0)
        goto done;
    const Py_ssize_t all = views[0].len / width;
    int good = all * width == views[0].len && views[1].len == 8 * all && g.chosen >= 1 && g.penalty > 0 && count >= 1
               && views[4].len == 8 * (((Py_ssize_t)1 << depth) - 1) && views[5].len == 4 * ((Py_ssize_t)1 << depth);
    for (Py_ssize_t i = 0; good && i < g.chosen; i++)
        good = g.features[i] >= 0 && g.features[i] < width;
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = ((int32_t *)views[2].buf)[i] >= 0 && ((int32_t *)views[2].buf)[i] < all;
    for (Py_ssize_t i = 0; good && i < views[0].len; i++)
        good = g.bins[i] < BINS;
    int64_t first = 0, second = 0;
    for (Py_ssize_t i = 0; good && i < all; i++) {
        first += llabs((long long)g.gradients[2 * i]);
        second += llabs((long long)g.gradients[2 * i + 1]);
    }
    if (!good || first > INT32_MAX || second > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, good ? "gradients: sums above 2^31 given" : "grow: arrays that do not fit");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    good = grow_tree(&g, views[2].buf, count, depth, views[4].buf, views[5].buf);
    Py_END_ALLOW_THREADS
    result = good ? Py_NewRef(Py_None) : PyErr_NoMemory();
done:
    release_arrays(views, 6);
    return result;
}

/* score(rows, width, features, edges, leaves, depth, out): adds the leaves that each row reaches to `out`. A value goes
 * left where it is at most the edge. rows and edges: the bits of float32 as uint32. */
static PyObject *score(PyObject *module, PyObject *args)
{
    static const Array arrays[] = {{"rows", UINT32, 0}, {"features", UINT16, 0}, {"edges", UINT32, 0},
                                   {"leaves", INT32, 0}, {"out", INT32, WRITTEN}};
    PyObject *given[5], *result = NULL;
    Py_buffer views[5];
    Py_ssize_t width;
    int depth;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOOOiO", &given[0], &width, &given[1], &given[2], &given[3], &depth, &given[4])
        || take_arrays(arrays, given, views, 5) < 0)
        return NULL;
    Trees model;
    if (check_trees(&model, &views[1], &views[2], &views[3], depth, width) < 0)
        goto done;
    const Py_ssize_t count = views[4].len / 4;
    if (views[0].len / 4 != count * width || (uintptr_t)views[0].buf % 4) {
        PyErr_SetString(PyExc_ValueError, "rows: an array of as many rows as out has, and of width columns, is needed");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    apply_trees(&model, views[0].buf, width, views[4].buf, count);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release_arrays(views, 5);
    return result;
}

static PyMethodDef methods[] = {
    {"gradients", gradients, METH_VARARGS, "gradients(scores, targets, weights, out)"},
    {"probabilities", probabilities, METH_VARARGS, "probabilities(scores, out)"},
    {"grow", grow, METH_VARARGS, "grow(bins, width, gradients, rows, features, depth, penalty, least, rate, splits, leaves)"},
    {"score", score, METH_VARARGS, "score(rows, width, features, edges, leaves, depth, out)"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    return PyModule_AddIntMacro(module, BINS) || PyModule_AddIntMacro(module, ONE) ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "trees", "Gradient-boosted decision trees.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_trees(void) { return PyModuleDef_Init(&module); }
