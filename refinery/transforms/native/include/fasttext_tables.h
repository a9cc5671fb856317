/* Checked pieces of a model file -> the tables of a Model: matrices as floats, and the tree of hierarchical softmax. */

#ifndef REFINERY_FASTTEXT_TABLES_H
#define REFINERY_FASTTEXT_TABLES_H

#include "fasttext_model.h"

enum { CENTROIDS = 256 };
#define MAX_COUNT 1000000000000000LL /* fastText's stand-in for a node without a count */

typedef struct {
    int64_t rows;
    const uint8_t *values;                   /* dense: rows * dim floats */
    const uint8_t *codes, *centroids;        /* quantised: rows * parts codes; dim * CENTROIDS floats */
    const uint8_t *norm_codes, *norm_values; /* a code per row, CENTROIDS floats; NULL without norms */
    int32_t parts, part_size, last_size;
} Matrix;

static float float_at(const uint8_t *values, uint64_t i)
{
    float value;
    memcpy(&value, values + i * sizeof value, sizeof value);
    return value;
}

/* The row as fastText adds it or multiplies by it, before any norm. */
static void copy_row(const Matrix *x, int32_t dim, int64_t row, float *out)
{
    if (x->values) {
        memcpy(out, x->values + (uint64_t)row * (uint64_t)dim * sizeof(float), (size_t)dim * sizeof(float));
        return;
    }
    for (int32_t part = 0, j = 0; part < x->parts; part++) {
        const int32_t size = part == x->parts - 1 ? x->last_size : x->part_size;
        const uint64_t code = x->codes[(uint64_t)row * (uint64_t)x->parts + (uint64_t)part];
        const uint64_t first = (uint64_t)part * CENTROIDS * (uint64_t)x->part_size + code * (uint64_t)size;
        for (int32_t k = 0; k < size; k++)
            out[j++] = float_at(x->centroids, first + (uint64_t)k);
    }
}

static float norm_of(const Matrix *x, int64_t row)
{
    return x->norm_codes ? float_at(x->norm_values, x->norm_codes[row]) : 1.0f;
}

static int fill_matrices(Model *m, const Matrix *in, const Matrix *out)
{
    float row[MAX_DIM];
    const size_t dim = (size_t)m->dim;
    m->input = take_pages(m->input_size);
    m->output = PyMem_RawCalloc(((size_t)m->labels + LANES - 1) / LANES * LANES * dim, sizeof(float));
    m->norms = PyMem_RawMalloc((size_t)m->labels * sizeof(float));
    if (!m->input || !m->output || !m->norms) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t i = 0; i < in->rows; i++) {
        float *to = m->input + (size_t)i * m->stride;
        copy_row(in, m->dim, i, to);
        if (in->norm_codes)
            for (size_t j = 0; j < dim; j++)
                to[j] = norm_of(in, i) * to[j];
    }
    for (int32_t i = 0; i < m->labels; i++) {
        copy_row(out, m->dim, i, row);
        for (size_t j = 0; j < dim; j++)
            m->output[((size_t)i / LANES * dim + j) * LANES + (size_t)i % LANES] = row[j];
        m->norms[i] = norm_of(out, i);
    }
    return 0;
}

/* fastText's Huffman tree over the labels' counts: leaves, then inner nodes, the root last. */
static int build_tree(Model *m, const int64_t *leaves)
{
    const int32_t labels = m->labels, nodes = 2 * labels - 1;
    int64_t *counts = PyMem_RawMalloc((size_t)nodes * sizeof(int64_t));
    m->tree = PyMem_RawMalloc((size_t)nodes * sizeof(Node));
    if (!counts || !m->tree) {
        PyMem_RawFree(counts);
        PyErr_NoMemory();
        return -1;
    }
    for (int32_t i = 0; i < nodes; i++) {
        m->tree[i] = (Node){-1, -1};
        counts[i] = i < labels ? leaves[i] : MAX_COUNT;
    }
    int32_t leaf = labels - 1, node = labels, least[2];
    for (int32_t i = labels; i < nodes; i++) { /* sums stay below MAX_COUNT, so no node is taken before it is made */
        for (int j = 0; j < 2; j++)
            least[j] = leaf >= 0 && counts[leaf] < counts[node] ? leaf-- : node++;
        m->tree[i] = (Node){least[0], least[1]};
        counts[i] = counts[least[0]] + counts[least[1]];
    }
    PyMem_RawFree(counts);
    return 0;
}

#endif
