/* SentencePiece: text in, token ids out, by BPE or by a unigram model.
 *
 * A text is normalised (include/piece_charsmap.h) and cut wherever no piece of the vocabulary holds the two characters
 * at the cut side by side: no token reaches over such a place, so each word is encoded by itself, by
 * include/piece_merge.h or include/piece_viterbi.h. Words of natural text repeat, so the ids of short words are kept in
 * a cache of two ways that compares the whole word: it changes the speed and never the result
 * (include/piece_encoder.h).
 *
 * Cost: linear in the text; a word of n bytes costs what the two headers say. Memory: 16 MiB of cache, 80 KiB of pairs
 * of characters, the tables of the headers; while encoding, up to 12 bytes per byte of the normalised text, and
 * that of the longest word. Safety: arguments are checked at entry; an encoder is used with the interpreter's lock held
 * and calls no Python code while it encodes, so threads may share one. */
#include "kernel.h"

#include "piece_encoder.h"
#include "piece_joins.h"

/* ---- the Python type -------------------------------------------------------------------------------------------- */

static PyObject *Encoder_encode(Encoder *self, PyObject *text) {
    PyObject *holder = NULL, *result = NULL;
    const char *data;
    Py_ssize_t size;
    if (!PyUnicode_Check(text)) return PyErr_Format(PyExc_TypeError, "text: a str is needed");
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        data = PyUnicode_DATA(text);
        size = PyUnicode_GET_LENGTH(text);
    } else { /* not AsUTF8AndSize, which would keep the copy alive as long as the text */
        holder = PyUnicode_AsUTF8String(text);
        if (!holder) return NULL;
        data = PyBytes_AS_STRING(holder);
        size = PyBytes_GET_SIZE(holder);
    }
    int failed = encode_text(self, (const uint8_t *)data, (const uint8_t *)data + size);
    if (failed < 0)
        PyErr_NoMemory();
    else if (failed)
        PyErr_Format(PyExc_ValueError, "a text of %zd bytes given, less than 4 GiB when normalised is allowed", size);
    else
        result = PyBytes_FromStringAndSize((const char *)self->out, (Py_ssize_t)(self->count * sizeof(uint32_t)));
    Py_XDECREF(holder);
    shrink(self);
    return result;
}

/* Whether `ends` cuts `bytes` into keys, with `text` of whole characters, 1 to LONGEST_PIECE bytes each, in ascending
 * order. */
static int sound_keys(const Keys *keys, size_t size, int text) {
    for (size_t i = 0; i < keys->count; i++) {
        size_t start = key_start(keys, i), stop = keys->ends[i];
        if (stop > size || stop <= start || stop - start > LONGEST_PIECE) return 0;
        if (text && utf8_inside(keys->bytes[start])) return 0;
        if (!i) continue;
        size_t earlier = i > 1 ? keys->ends[i - 2] : 0, n = start - earlier, m = stop - start;
        int order = memcmp(keys->bytes + earlier, keys->bytes + start, n < m ? n : m);
        if (order > 0 || (!order && n >= m)) return 0;
    }
    return keys->count && keys->ends[keys->count - 1] == size;
}

/* The keys that are marked, and their ids, into memory of their own. -1 without memory. */
static int take_marked(const Keys *keys, const uint32_t *ids, const uint8_t *marks, Keys *taken, uint32_t *taken_ids) {
    uint8_t *bytes = PyMem_RawMalloc(keys->ends[keys->count - 1]);
    uint32_t *ends = PyMem_RawMalloc(keys->count * sizeof(uint32_t)), size = 0;
    *taken = (Keys){bytes, ends, 0};
    if (!bytes || !ends) return -1;
    for (size_t i = 0; i < keys->count; i++) {
        size_t start = key_start(keys, i), n = keys->ends[i] - start;
        if (!marks[i]) continue;
        memcpy(bytes + size, keys->bytes + start, n);
        ends[taken->count] = size += (uint32_t)n;
        taken_ids[taken->count++] = ids[i];
    }
    return 0;
}

static int fill_whole(Encoder *self, const Keys *keys, const uint8_t *marks) {
    Keys taken;
    self->whole_ids = PyMem_RawMalloc(keys->count * sizeof(uint32_t));
    int failed = !self->whole_ids || take_marked(keys, self->ids, marks, &taken, self->whole_ids);
    if (failed) PyErr_NoMemory();
    for (size_t i = 0; !failed && i < taken.count; i++) self->whole_first[taken.bytes[key_start(&taken, i)]] = 1;
    failed = failed || build_trie(&self->whole, &taken);
    if (self->whole_ids) {
        PyMem_RawFree((void *)taken.bytes);
        PyMem_RawFree((void *)taken.ends);
    }
    return -failed;
}

/* Copies `ids` and `values`, and makes the tables of the model. -1 and an exception if something is wrong. */
static int fill(Encoder *self, const Keys *keys, const uint32_t *ids, const char *values, const uint8_t *marks,
                const Rows *rows) {
    Trie trie = {NULL, 0};
    uint32_t highest = self->unknown_id;
    for (size_t i = 0; i < 256; i++) highest = self->byte_ids[i] > highest ? self->byte_ids[i] : highest;
    for (size_t i = 0; i < keys->count; i++) highest = ids[i] > highest ? ids[i] : highest;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t row[3];
        read_row(rows, i, row);
        for (int j = 0; j < 3; j++) highest = row[j] > highest ? row[j] : highest;
    }
    if (highest >= MOST_IDS) return PyErr_Format(PyExc_ValueError, "ids: below %d is allowed", MOST_IDS), -1;
    uint32_t *own = PyMem_RawMalloc(keys->count * sizeof(uint32_t)); /* values at any address */
    self->merger.known = highest + 1;
    self->ids = PyMem_RawMalloc(keys->count * sizeof(uint32_t));
    self->scores = PyMem_RawCalloc(highest + 1, sizeof(float));
    self->slots = take_pages((size_t)SETS * WAYS * sizeof(Slot));
    if (!own || !self->ids || !self->scores || !self->slots) {
        PyMem_RawFree(own);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(self->ids, ids, keys->count * sizeof(uint32_t));
    memcpy(own, values, keys->count * sizeof(uint32_t));
    fill_joined(self, keys);
    int failed = build_trie(&trie, keys);
    if (self->unigram) {
        self->splitter.trie = trie;
        self->splitter.scores = (float *)own;
        for (size_t i = 0; !failed && i < keys->count; i++) {
            float score = self->splitter.scores[i];
            self->scores[ids[i]] = score;
            if (!(fabsf(score) <= RESET)) failed = 1, PyErr_SetString(PyExc_ValueError, "values: a score is too large");
        }
        return -failed;
    }
    failed = failed || fill_merger(&self->merger, &trie, keys, ids, own, rows)
             || fill_whole(self, keys, marks);
    free_trie(&trie);
    PyMem_RawFree(own);
    return -failed;
}

static const char *check_arguments(const Keys *keys, const Py_buffer *pieces, Py_ssize_t ids, Py_ssize_t values,
                                   Py_ssize_t marks, Py_ssize_t byte_ids, float unknown_score) {
    if (pieces->len >= (Py_ssize_t)NONE || !sound_keys(keys, (size_t)pieces->len, 1))
        return "pieces and ends: pieces of 1 to 512 bytes in ascending order are needed";
    if (ids != (Py_ssize_t)keys->count) return "ids: one for each piece is needed";
    if (values != (Py_ssize_t)keys->count) return "values: one for each piece is needed";
    if (marks != (Py_ssize_t)keys->count) return "whole: one for each piece is needed";
    if (byte_ids != 0 && byte_ids != 256) return "byte_ids: 256 uint32 values or none are needed";
    if (!(fabsf(unknown_score) <= RESET)) return "unknown_score: at most 100000 is allowed";
    return NULL;
}

static PyObject *Encoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    enum { PIECES, ENDS, IDS, VALUES, WHOLE, BYTE_IDS, CHARSMAP, MERGES, BUFFERS };
    static const Array arrays[] = {{"pieces", FLAG, 0}, {"ends", UINT32, 0},   {"ids", UINT32, 0},   {"values", RAW32, 0},
                                   {"whole", FLAG, 0},  {"byte_ids", RAW32, 0}, {"charsmap", FLAG, 0},
                                   {"merges", RAW32, 0}};
    static char *names[] = {"unigram", "pieces",        "ends",     "ids",    "values", "whole", "byte_ids",
                            "unknown", "unknown_score", "charsmap", "prefix", "trim",   "merges", NULL};
    PyObject *given[BUFFERS], *unknown;
    Py_buffer b[BUFFERS];
    Encoder *self = NULL;
    int unigram, prefix, trim;
    float unknown_score;
    int64_t unknown_id;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "pOOOOOOOfOppO:Encoder", names, &unigram, &given[PIECES], &given[ENDS],
                                     &given[IDS], &given[VALUES], &given[WHOLE], &given[BYTE_IDS], &unknown,
                                     &unknown_score, &given[CHARSMAP], &prefix, &trim, &given[MERGES])
        || read_integer(unknown, "unknown", 0, MOST_IDS - 1, &unknown_id) < 0 || take_arrays(arrays, given, b, BUFFERS))
        return NULL;
    Keys keys = {b[PIECES].buf, b[ENDS].buf, (size_t)b[ENDS].len / sizeof(uint32_t)};
    const char *fault = check_arguments(&keys, &b[PIECES], b[IDS].len / 4, b[VALUES].len / 4, b[WHOLE].len,
                                        b[BYTE_IDS].len / 4, unknown_score);
    Rows rows = {b[MERGES].buf, (size_t)b[MERGES].len / (3 * sizeof(uint32_t))};
    if (b[MERGES].len % (3 * sizeof(uint32_t)) || rows.count >= NONE / 4)
        fault = "merges: rows of 3 uint32 values (left, right, joint) are needed";
    PyObject *checked = NULL;
    if (fault)
        PyErr_SetString(PyExc_ValueError, fault);
    else if ((checked = PyUnicode_DecodeUTF8(b[PIECES].buf, b[PIECES].len, "strict")))
        self = (Encoder *)type->tp_alloc(type, 0);
    Py_XDECREF(checked);
    if (self) {
        self->unigram = unigram;
        self->bytewise = b[BYTE_IDS].len > 0;
        self->unknown_id = (uint32_t)unknown_id;
        self->splitter.unknown = unknown_score;
        self->normalizer.prefix = prefix;
        self->normalizer.trim = trim;
        if (b[BYTE_IDS].len) memcpy(self->byte_ids, b[BYTE_IDS].buf, sizeof self->byte_ids);
        if (fill_normalizer(&self->normalizer, b[CHARSMAP].buf, (size_t)b[CHARSMAP].len)
            || fill(self, &keys, b[IDS].buf, b[VALUES].buf, b[WHOLE].buf, &rows))
            Py_CLEAR(self);
    }
    release_arrays(b, BUFFERS);
    return (PyObject *)self;
}

static PyObject *Encoder_work(Encoder *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("nn", (Py_ssize_t)self->misses, (Py_ssize_t)self->unsure);
}

static void Encoder_dealloc(Encoder *self) {
    PyTypeObject *type = Py_TYPE(self);
    free_normalizer(&self->normalizer);
    free_trie(&self->splitter.trie);
    PyMem_RawFree(self->splitter.scores);
    free_merger(&self->merger);
    free_trie(&self->whole);
    PyMem_RawFree(self->ids);
    PyMem_RawFree(self->whole_ids);
    PyMem_RawFree(self->scores);
    free_pages(self->slots, (size_t)SETS * WAYS * sizeof(Slot));
    PyMem_RawFree(self->text.bytes);
    PyMem_RawFree(self->nodes);
    PyMem_RawFree(self->parts);
    PyMem_RawFree(self->out);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Encoder_methods[] = {
    {"encode", (PyCFunction)Encoder_encode, METH_O,
     "encode(text) -> bytes of native uint32 ids, one per token.\n\n"
     "UnicodeEncodeError for lone surrogates, MemoryError, ValueError from 4 GiB."},
    {"work", (PyCFunction)Encoder_work, METH_NOARGS,
     "work() -> (words put into the cache, words there that were split once more) so far; for tests."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Encoder_slots[] = {
    {Py_tp_doc,
     "Encoder(unigram, pieces, ends, ids, values, whole, byte_ids, unknown, unknown_score, charsmap, prefix, trim,\n"
     "merges): SentencePiece BPE or unigram, or BPE over characters.\n\n"
     "pieces, ends: UTF-8 of the pieces in ascending order, a space for U+2581; piece i ends at ends[i]. ids: uint32.\n"
     "values: unigram: float32 scores; BPE: uint32 ranks, the lowest merges first. whole: pieces that BPE takes as\n"
     "they stand. byte_ids: 256 ids for the bytes of unknown characters, or none. unknown, unknown_score: of others.\n"
     "charsmap: NormalizerSpec.precompiled_charsmap or nothing. prefix, trim: whitespace, see piece_charsmap.h.\n"
     "merges: none, or what BPE merges instead of all that makes a piece: rows of left, right and joint id by rank."},
    {Py_tp_new, Encoder_new},
    {Py_tp_dealloc, Encoder_dealloc},
    {Py_tp_methods, Encoder_methods},
    {0, NULL}};

static PyType_Spec Encoder_spec = {"transforms.native.pieces.Encoder", sizeof(Encoder), 0, Py_TPFLAGS_DEFAULT,
                                   Encoder_slots};

/* Whether these are the numbers below `count`, each once; fills `by_rank`, which has room. */
static int sound_ranks(const uint32_t *ranks, size_t count, uint32_t *by_rank) {
    memset(by_rank, 0xFF, count * sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        if (ranks[i] >= count || by_rank[ranks[i]] != NONE) return 0;
        by_rank[ranks[i]] = (uint32_t)i;
    }
    return 1;
}

static PyObject *joins(PyObject *Py_UNUSED(module), PyObject *args) {
    enum { TOKENS, ENDS, RANKS, BUFFERS };
    static const Array arrays[] = {{"tokens", FLAG, 0}, {"ends", UINT32, 0}, {"ranks", UINT32, 0}};
    PyObject *given[BUFFERS], *result = NULL;
    Py_buffer b[BUFFERS];
    if (!PyArg_ParseTuple(args, "OOO:joins", &given[TOKENS], &given[ENDS], &given[RANKS])
        || take_arrays(arrays, given, b, BUFFERS))
        return NULL;
    Keys keys = {b[TOKENS].buf, b[ENDS].buf, (size_t)b[ENDS].len / sizeof(uint32_t)};
    Trie trie = {NULL, 0};
    Joins self = {NULL, NULL, {.pairs = NULL}};
    uint32_t *memory = PyMem_RawMalloc((keys.count + 1) * 6 * sizeof(uint32_t)), *rows = memory + 3 * keys.count, odd;
    if (!memory || take_pairs(&self.joined, keys.count)) {
        PyErr_NoMemory();
    } else if (b[TOKENS].len >= (Py_ssize_t)NONE || !sound_keys(&keys, (size_t)b[TOKENS].len, 0)) {
        PyErr_SetString(PyExc_ValueError, "tokens and ends: tokens of 1 to 512 bytes in ascending order are needed");
    } else if (b[RANKS].len != b[ENDS].len || !sound_ranks(b[RANKS].buf, keys.count, memory)) {
        PyErr_SetString(PyExc_ValueError, "ranks: the numbers below that of tokens, each once, are needed");
    } else if (!build_trie(&trie, &keys)) {
        self.left = memory + keys.count;
        self.right = memory + 2 * keys.count;
        size_t count = fill_joins(&self, &trie, &keys, b[RANKS].buf, memory, rows, &odd);
        Py_ssize_t size = (Py_ssize_t)(count * 3 * sizeof(uint32_t));
        result = odd == NONE ? PyBytes_FromStringAndSize((const char *)rows, size) : PyLong_FromUnsignedLong(odd);
    }
    free_trie(&trie);
    if (self.joined.pairs) free_pages(self.joined.pairs, (self.joined.mask + 1) * sizeof(Pair));
    PyMem_RawFree(memory);
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"joins", joins, METH_VARARGS,
     "joins(tokens, ends, ranks) -> bytes of rows of 3 uint32: the ranks of the two tokens that each longer token is\n"
     "joined from, and its own, by rank; or the rank (int) of a token that its own bytes do not lead to.\n\n"
     "tokens, ends: bytes of the tokens in ascending order, token i ends at ends[i]. ranks: the numbers from 0 on,\n"
     "those of single bytes first."},
    {NULL, NULL, 0, NULL}};

static int module_exec(PyObject *module) {
    if (draw_key(&pair_key)) return -1;
    PyObject *type = PyType_FromSpec(&Encoder_spec);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Encoder", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pieces", "SentencePiece.", 0, methods, module_slots, NULL, NULL,
                                    NULL};

PyMODINIT_FUNC PyInit_pieces(void) { return PyModuleDef_Init(&module); }
