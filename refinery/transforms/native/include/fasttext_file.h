/* fastText's model files (.bin, .ftz), read from memory with every size and index checked.
 *
 * Layout, little-endian (fastText 0.9.2, src/fasttext.cc: FastText::loadModel and what it calls): magic, version; 12
 * int32 and a double of arguments; the dictionary (sizes, then name, count and type of each entry, then pairs of pruned
 * buckets); the input matrix and the output matrix, each plain or product-quantised. Versions up to 12, supervised.
 *
 * What is damaged or no such file raises ValueError. What is sound and beyond the limits of this kernel (MAX_ of
 * fasttext_model.h) raises NotImplementedError, after all of it was checked: such a file may go to fastText itself,
 * which checks nothing. Cost: linear in the file; memory is reserved for what the file holds alone, and for the limits. */

#ifndef REFINERY_FASTTEXT_FILE_H
#define REFINERY_FASTTEXT_FILE_H

#include <math.h>

#include "fasttext_tables.h"

enum { MAGIC = 793712314, VERSION = 12, VERSION_WITHOUT_NGRAMS = 11, SUPERVISED = 3 };

typedef struct {
    const uint8_t *at, *end;
    const char *unsupported; /* why the model is left to fastText */
} Reader;

static int malformed(const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "no fastText model: %s", what);
    return -1;
}

/* The next n bytes, or NULL with a ValueError. */
static const uint8_t *take_bytes(Reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->at)) {
        malformed("it ends too early");
        return NULL;
    }
    r->at += n;
    return r->at - n;
}

static int read_value(Reader *r, void *value, size_t size)
{
    const uint8_t *from = take_bytes(r, size);
    if (!from)
        return -1;
    memcpy(value, from, size);
    return 0;
}

/* n floats, all of them finite: sums of others are not numbers. */
static const uint8_t *take_floats(Reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->at) / sizeof(float)) {
        malformed("it ends too early");
        return NULL;
    }
    const uint8_t *values = take_bytes(r, n * sizeof(float));
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(float_at(values, i))) {
            malformed("a weight is no finite number");
            return NULL;
        }
    return values;
}

static int read_header(Reader *r, Model *m)
{
    enum { DIM, WORD_NGRAMS = 5, LOSS, KIND, BUCKETS, MIN_CHARS, MAX_CHARS };
    int32_t magic, version, values[12];
    double unused;
    if (read_value(r, &magic, 4) < 0 || read_value(r, &version, 4) < 0)
        return -1;
    if (magic != MAGIC)
        return malformed("it begins with other bytes");
    if (version > VERSION) {
        PyErr_Format(PyExc_ValueError, "a fastText model of version %d, up to %d is known", (int)version, VERSION);
        return -1;
    }
    if (read_value(r, values, sizeof values) < 0 || read_value(r, &unused, 8) < 0)
        return -1;
    if (values[KIND] != SUPERVISED) {
        PyErr_SetString(PyExc_ValueError, "a fastText model of word vectors, a supervised one is needed");
        return -1;
    }
    if (values[DIM] < 1 || values[LOSS] < HIERARCHICAL || values[LOSS] > ONE_VS_ALL)
        return malformed("impossible arguments");
    m->dim = values[DIM];
    m->word_ngrams = values[WORD_NGRAMS];
    m->loss = values[LOSS];
    m->min_chars = values[MIN_CHARS];
    m->max_chars = version == VERSION_WITHOUT_NGRAMS || values[MAX_CHARS] < 0 ? 0 : values[MAX_CHARS];
    if (values[BUCKETS] < 1 && (m->max_chars > 0 || m->word_ngrams > 1))
        return malformed("n-grams without buckets");
    m->buckets = values[BUCKETS] < 1 ? 1 : (uint32_t)values[BUCKETS];
    m->bucket_inverse = UINT64_MAX / m->buckets + 1;
    if (m->dim > MAX_DIM)
        r->unsupported = "vectors are too wide";
    if (m->max_chars > MAX_NGRAM || m->word_ngrams > MAX_NGRAM)
        r->unsupported = "n-grams are too long";
    return 0;
}

/* Fills the hash table. A later entry of the same name takes the place of the earlier one, as in fastText. */
static int index_words(Model *m)
{
    const int64_t entries = (int64_t)m->words + m->labels;
    uint64_t size = 16, steps = 0;
    while (size < 2 * (uint64_t)entries)
        size *= 2;
    if (!(m->slots = PyMem_RawMalloc(size * sizeof(WordSlot)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint64_t i = 0; i < size; i++)
        m->slots[i] = (WordSlot){0, -1};
    m->slot_mask = (uint32_t)(size - 1);
    for (int32_t i = 0; i < entries; i++) {
        const char *name = m->names + m->starts[i];
        const size_t n = m->starts[i + 1] - m->starts[i];
        const uint32_t hash = hash_bytes(name, n);
        *find_word(m, name, n, hash, &steps) = (WordSlot){hash, i};
        if (steps > 64 * size)
            return malformed("its words share one hash");
    }
    return 0;
}

/* Fills the bitmap from pairs (bucket, row behind the words); a later pair of a bucket wins. -1 on failure. */
static int keep_buckets(Model *m, const uint8_t *pairs, int64_t count, int64_t *rows)
{
    const size_t size = m->buckets / 64 + 1;
    m->kept = PyMem_RawCalloc(size, sizeof(uint64_t));
    m->kept_before = PyMem_RawMalloc(size * sizeof(uint32_t));
    m->kept_row = PyMem_RawCalloc((size_t)count + 1, sizeof(int32_t)); /* one more, for buckets behind the last */
    if (!m->kept || !m->kept_before || !m->kept_row) {
        PyErr_NoMemory();
        return -1;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < count; i++) {
            int32_t pair[2];
            memcpy(pair, pairs + 8 * i, sizeof pair);
            if (pair[1] < 0 || pair[1] > INT32_MAX - m->words)
                return malformed("an n-gram outside the matrix");
            if (pair[0] < 0 || (uint32_t)pair[0] >= m->buckets)
                continue; /* never looked up */
            const size_t word = (size_t)pair[0] / 64;
            const uint64_t bit = 1ULL << pair[0] % 64;
            if (pass == 0) {
                m->kept[word] |= bit;
                continue;
            }
            m->kept_row[m->kept_before[word] + (uint32_t)__builtin_popcountll(m->kept[word] & (bit - 1))] =
                m->words + pair[1];
            if (m->words + (int64_t)pair[1] >= *rows)
                *rows = m->words + (int64_t)pair[1] + 1;
        }
        uint32_t before = 0;
        for (size_t i = 0; i < size; i++) {
            m->kept_before[i] = before;
            before += (uint32_t)__builtin_popcountll(m->kept[i]);
        }
    }
    return 0;
}

/* `rows`: rows that the input matrix must have. `counts`: a copy of the labels' counts, to be freed by the caller. */
static int read_dictionary(Reader *r, Model *m, int64_t *rows, int64_t **counts)
{
    int32_t sizes[3];
    int64_t unused, pruned, sum = 0;
    if (read_value(r, sizes, sizeof sizes) < 0 || read_value(r, &unused, 8) < 0 || read_value(r, &pruned, 8) < 0)
        return -1;
    m->words = sizes[1];
    m->labels = sizes[2];
    if (m->words < 0 || m->labels < 1 || sizes[0] != (int64_t)m->words + m->labels
        || (uint64_t)sizes[0] > (uint64_t)(r->end - r->at) / 10)
        return malformed("impossible sizes of the dictionary");
    const uint8_t *entries = r->at;
    uint64_t letters = 0;
    for (int pass = 0; pass < 2; pass++) {
        r->at = entries;
        if (pass) {
            m->names = PyMem_RawMalloc(letters + 1);
            m->starts = PyMem_RawMalloc(((size_t)sizes[0] + 1) * sizeof(uint64_t));
            *counts = PyMem_RawMalloc((size_t)m->labels * sizeof(int64_t));
            if (!m->names || !m->starts || !*counts) {
                PyErr_NoMemory();
                return -1;
            }
            letters = 0;
        }
        for (int32_t i = 0; i < sizes[0]; i++) {
            const uint8_t *name = r->at, *stop = memchr(name, 0, (size_t)(r->end - r->at));
            int64_t count;
            int8_t type;
            if (!stop)
                return malformed("it ends too early");
            r->at = stop + 1;
            if (read_value(r, &count, 8) < 0 || read_value(r, &type, 1) < 0)
                return -1;
            if (type != (i >= m->words))
                return malformed("words behind labels");
            if (pass) {
                m->starts[i] = letters;
                memcpy(m->names + letters, name, (size_t)(stop - name));
                if (type) {
                    if (count < 0 || count >= MAX_COUNT || (sum += count) >= MAX_COUNT)
                        return malformed("impossible counts of labels");
                    (*counts)[i - m->words] = count;
                }
            }
            letters += (uint64_t)(stop - name);
        }
    }
    m->starts[sizes[0]] = letters;
    *rows = m->words;
    if (index_words(m) < 0)
        return -1;
    if (pruned < 0) {
        if (m->max_chars > 0 || m->word_ngrams > 1)
            *rows += m->buckets;
        if (*rows > INT32_MAX)
            return malformed("more rows than numbers for them");
        return 0;
    }
    const uint8_t *pairs = (uint64_t)pruned > (uint64_t)(r->end - r->at) / 8 ? NULL : take_bytes(r, 8 * (uint64_t)pruned);
    if (!pairs)
        return malformed("it ends too early");
    m->pruned = 1;
    if (m->buckets > MAX_BUCKETS) { /* rows are checked all the same */
        r->unsupported = "too many buckets";
        for (int64_t i = 0; i < pruned; i++) {
            int32_t pair[2];
            memcpy(pair, pairs + 8 * i, sizeof pair);
            if (pair[1] < 0 || pair[1] > INT32_MAX - m->words)
                return malformed("an n-gram outside the matrix");
            if (m->words + (int64_t)pair[1] >= *rows)
                *rows = m->words + (int64_t)pair[1] + 1;
        }
        return 0;
    }
    return pruned ? keep_buckets(m, pairs, pruned, rows) : 0;
}

static int read_quantiser(Reader *r, int32_t dim, int32_t *parts, int32_t *part, int32_t *last, const uint8_t **values)
{
    int32_t sizes[4];
    if (read_value(r, sizes, sizeof sizes) < 0)
        return -1;
    *parts = sizes[1];
    *part = sizes[2];
    *last = sizes[3];
    if (sizes[0] != dim || *parts < 1 || *part < 1 || *last < 1 || *last > *part
        || (int64_t)(*parts - 1) * *part + *last != dim)
        return malformed("a quantiser of another shape than its matrix");
    return (*values = take_floats(r, (uint64_t)dim * CENTROIDS)) ? 0 : -1;
}

static int read_matrix(Reader *r, const Model *m, int quantised, Matrix *x)
{
    uint8_t with_norms = 0;
    int64_t shape[2];
    memset(x, 0, sizeof *x);
    if ((quantised && read_value(r, &with_norms, 1) < 0) || read_value(r, shape, sizeof shape) < 0)
        return -1;
    x->rows = shape[0];
    if (with_norms > 1 || shape[1] != m->dim || x->rows < 0 || x->rows > INT32_MAX)
        return malformed("a matrix of impossible shape");
    if (!quantised)
        return (x->values = take_floats(r, (uint64_t)x->rows * (uint64_t)m->dim)) ? 0 : -1;
    int32_t codes, one[3];
    if (read_value(r, &codes, 4) < 0 || codes < 0 || !(x->codes = take_bytes(r, (uint64_t)codes)))
        return malformed("it ends too early");
    if (read_quantiser(r, m->dim, &x->parts, &x->part_size, &x->last_size, &x->centroids) < 0)
        return -1;
    if (codes != x->rows * x->parts)
        return malformed("a matrix of impossible shape");
    if (with_norms
        && (!(x->norm_codes = take_bytes(r, (uint64_t)x->rows))
            || read_quantiser(r, 1, &one[0], &one[1], &one[2], &x->norm_values) < 0))
        return -1;
    return 0;
}

/* Fills `m` from a file of `size` bytes. -1 and an exception; `m` is to be freed in any case. */
static int read_model(Model *m, const uint8_t *data, size_t size)
{
    Reader r = {data, data + size, NULL};
    Matrix in, out;
    int64_t rows = 0, *counts = NULL;
    uint8_t quantised, quantised_output;
    int failed = -1;
    if (read_header(&r, m) < 0 || read_dictionary(&r, m, &rows, &counts) < 0 || read_value(&r, &quantised, 1) < 0)
        goto done;
    if (quantised > 1 || (!quantised && m->pruned)) {
        malformed("a pruned dictionary with a matrix that is not quantised");
        goto done;
    }
    if (read_matrix(&r, m, quantised, &in) < 0 || read_value(&r, &quantised_output, 1) < 0
        || read_matrix(&r, m, quantised && quantised_output, &out) < 0)
        goto done;
    if (quantised_output > 1 || in.rows < rows || out.rows != m->labels) {
        malformed("matrices of other sizes than the dictionary");
        goto done;
    }
    m->dense_output = out.values != NULL;
    m->stride = ((size_t)m->dim + 3) / 4 * 4;
    if (quantised && (uint64_t)in.rows * m->stride * sizeof(float) > MAX_TABLE)
        r.unsupported = "its quantised matrix is too large";
    if (m->labels > MAX_LABELS)
        r.unsupported = "too many labels";
    if (r.unsupported) {
        PyErr_Format(PyExc_NotImplementedError, "a fastText model beyond the limits of the kernel: %s", r.unsupported);
        goto done;
    }
    m->input_size = ((size_t)in.rows * m->stride + 4) * sizeof(float);
    if (fill_matrices(m, &in, &out) < 0 || (m->loss == HIERARCHICAL && build_tree(m, counts) < 0))
        goto done;
    for (int i = 0; i <= SIGMOID_STEPS; i++) {
        const float x = (float)(i * 2 * SIGMOID_END) / SIGMOID_STEPS - SIGMOID_END;
        m->sigmoid[i] = (float)(1.0 / (1.0 + expf(-x)));
    }
    failed = 0;
done:
    PyMem_RawFree(counts);
    return failed;
}

#endif
