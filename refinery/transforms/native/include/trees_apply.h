/* Applying complete decision trees to rows of float32. */

#ifndef REFINERY_TREES_APPLY_H
#define REFINERY_TREES_APPLY_H

#include "kernel.h"

enum { MOST_DEPTH = 8, MOST_FEATURES = 1024, ROWS = 8 /* that go through a tree side by side */ };

typedef struct {
    const uint16_t *features; /* of the nodes: trees x (2^depth - 1) */
    const float *edges;       /* a value goes left where it is at most the edge */
    const int32_t *leaves;    /* trees x 2^depth */
    Py_ssize_t trees;
    int depth;
} Trees;

INLINE void apply_some(const Trees *model, const float *rows, Py_ssize_t width, int32_t *out, const int count)
{
    const Py_ssize_t nodes = ((Py_ssize_t)1 << model->depth) - 1;
    const uint16_t *features = model->features;
    const float *edges = model->edges;
    const int32_t *leaves = model->leaves;
    for (Py_ssize_t t = 0; t < model->trees; t++, features += nodes, edges += nodes, leaves += nodes + 1) {
        uint32_t at[ROWS] = {0};
        for (int level = 0; level < model->depth; level++)
            for (int i = 0; i < count; i++)
                at[i] = 2 * at[i] + 1 + !(rows[i * width + features[at[i]]] <= edges[at[i]]);
        for (int i = 0; i < count; i++)
            out[i] += leaves[at[i] - (uint32_t)nodes];
    }
}

/* Adds the leaves that each of `count` rows reaches to `out`. */
static void apply_trees(const Trees *model, const float *rows, Py_ssize_t width, int32_t *out, Py_ssize_t count)
{
    Py_ssize_t row = 0;
    for (; row + ROWS <= count; row += ROWS)
        apply_some(model, rows + row * width, width, out + row, ROWS);
    for (; row < count; row++)
        apply_some(model, rows + row * width, width, out + row, 1);
}

/* Takes a model's arrays: features, edges, leaves. -1 and an exception if they do not fit `width` columns. */
CHECK int check_trees(Trees *model, const Py_buffer *features, const Py_buffer *edges, const Py_buffer *leaves,
                      int depth, Py_ssize_t width)
{
    if (check_range("width", width, 1, MOST_FEATURES) < 0 || check_range("depth", depth, 1, MOST_DEPTH) < 0)
        return -1;
    const Py_ssize_t nodes = ((Py_ssize_t)1 << depth) - 1, trees = features->len / 2 / nodes;
    *model = (Trees){features->buf, edges->buf, leaves->buf, trees, depth};
    int good = features->len / 2 == trees * nodes && edges->len / 4 == trees * nodes
               && leaves->len / 4 == trees * (nodes + 1) && (uintptr_t)edges->buf % 4 == 0;
    for (Py_ssize_t i = 0; good && i < trees * nodes; i++)
        good = model->features[i] < width;
    if (!good)
        PyErr_SetString(PyExc_ValueError, "features, edges, leaves: arrays of trees of that depth and width are needed");
    return good ? 0 : -1;
}

#endif
