/* The hidden vector -> the best labels and their probabilities, for fastText's four losses.
 *
 * The arithmetic is that of fastText 0.9.2, src/loss.cc: floats where it has floats, doubles where it has doubles, the
 * same functions of the C library, each label's products added from the first to the last. Scores are logarithms; ties
 * are ordered as libstdc++'s heap functions order them. */

#ifndef REFINERY_FASTTEXT_OUTPUT_H
#define REFINERY_FASTTEXT_OUTPUT_H

#include <math.h>

#include "fasttext_model.h"

typedef struct {
    float score; /* logarithm of the probability */
    int32_t label;
} Found;

typedef struct {
    Found *found; /* a heap, the lowest score first; room for k + 1 */
    int32_t count, k;
    float threshold;
} Best;

static float log_of(float x) { return (float)log((double)x + 1e-5); }

/* libstdc++'s __push_heap, __adjust_heap and __pop_heap for "greater". */
static void sift_up(Found *heap, int32_t hole, int32_t top, Found value)
{
    for (int32_t parent = (hole - 1) / 2; hole > top && heap[parent].score > value.score; parent = (hole - 1) / 2) {
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = value;
}

static void adjust_heap(Found *heap, int32_t length, Found value)
{
    int32_t hole = 0, second = 0;
    while (second < (length - 1) / 2) {
        second = 2 * (second + 1);
        if (heap[second].score > heap[second - 1].score)
            second--;
        heap[hole] = heap[second];
        hole = second;
    }
    if ((length & 1) == 0 && second == (length - 2) / 2) {
        second = 2 * (second + 1);
        heap[hole] = heap[second - 1];
        hole = second - 1;
    }
    sift_up(heap, hole, 0, value);
}

/* Moves the lowest of heap[0 ... length) to its end. */
static void pop_heap(Found *heap, int32_t length)
{
    if (length < 2)
        return;
    const Found value = heap[length - 1];
    heap[length - 1] = heap[0];
    adjust_heap(heap, length - 1, value);
}

static void offer(Best *best, float score, int32_t label)
{
    best->found[best->count++] = (Found){score, label};
    sift_up(best->found, best->count - 1, 0, best->found[best->count - 1]);
    if (best->count > best->k) {
        pop_heap(best->found, best->count);
        best->count--;
    }
}

static int is_beaten(const Best *best, float score)
{
    return best->count == best->k && score < best->found[0].score;
}

/* Products of the hidden vector with all rows of the output matrix, `out` padded to LANES. -1 for a NaN, where fastText
 * raises RuntimeError for a plain matrix. */
static int multiply(const Model *m, const float *hidden, float *out)
{
    for (int32_t i = 0; i < m->labels; i += LANES) {
        const float *column = m->output + (size_t)i * (size_t)m->dim;
        Vector4 low = {0}, high = {0};
        for (int32_t j = 0; j < m->dim; j++, column += LANES) {
            low += *(const Vector4 *)column * hidden[j];
            high += *(const Vector4 *)(column + 4) * hidden[j];
        }
        memcpy(out + i, &low, sizeof low);
        memcpy(out + i + 4, &high, sizeof high);
    }
    for (int32_t i = 0; i < m->labels; i++) {
        if (!m->dense_output)
            out[i] *= m->norms[i];
        if (isnan(out[i]))
            return -1;
    }
    return 0;
}

static float sigmoid_of(const Model *m, float x)
{
    if (x < -SIGMOID_END)
        return 0.0f;
    if (x > SIGMOID_END)
        return 1.0f;
    return m->sigmoid[(int)((x + SIGMOID_END) * SIGMOID_STEPS / SIGMOID_END / 2)];
}

static void softmax(const Model *m, float *out)
{
    float most = out[0], sum = 0.0f;
    for (int32_t i = 0; i < m->labels; i++)
        most = most < out[i] ? out[i] : most;
    for (int32_t i = 0; i < m->labels; i++) {
        out[i] = (float)exp((double)(out[i] - most));
        sum += out[i];
    }
    for (int32_t i = 0; i < m->labels; i++)
        out[i] /= sum;
}

/* Walks the tree, left before right, and leaves branches that cannot hold one of the best. */
static void walk(const Model *m, const float *products, Best *best)
{
    Found stack[MAX_LABELS + 1];
    int32_t depth = 0;
    const float least = log_of(best->threshold);
    stack[depth++] = (Found){0.0f, 2 * m->labels - 2};
    while (depth) {
        const Found at = stack[--depth];
        if (at.score < least || is_beaten(best, at.score))
            continue;
        const Node node = m->tree[at.label];
        if (node.left < 0) {
            offer(best, at.score, at.label);
            continue;
        }
        const float f = (float)(1.0 / (double)(1.0f + expf(-products[at.label - m->labels])));
        stack[depth++] = (Found){at.score + log_of(f), node.right};
        stack[depth++] = (Found){at.score + log_of((float)(1.0 - (double)f)), node.left};
    }
}

/* Fills `best`, in order from the highest score down. -1 for products that are no numbers. */
static int find_best(const Model *m, const float *hidden, Best *best)
{
    float out[MAX_LABELS + LANES];
    if (multiply(m, hidden, out) < 0)
        return -1;
    if (m->loss == HIERARCHICAL) {
        walk(m, out, best);
    } else {
        if (m->loss == SOFTMAX)
            softmax(m, out);
        else
            for (int32_t i = 0; i < m->labels; i++)
                out[i] = sigmoid_of(m, out[i]);
        for (int32_t i = 0; i < m->labels; i++)
            if (!(out[i] < best->threshold) && !is_beaten(best, log_of(out[i])))
                offer(best, log_of(out[i]), i);
    }
    for (int32_t length = best->count; length > 1; length--)
        pop_heap(best->found, length);
    return 0;
}

#endif
