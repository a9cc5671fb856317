/* fastText's prediction for supervised models: a line of text in, labels and probabilities out.
 *
 * include/fasttext_file.h and fasttext_tables.h read the file, fasttext_features.h sums the rows of words and n-grams,
 * fasttext_output.h finds the best labels. Every operation on floats is fastText's, in its order, so labels and
 * probabilities are the same to the bit (fastText as compiled for x86-64, without fused multiplications; Joulin et al.
 * 2016, 2017).
 *
 * What makes it faster: the quantised matrix is multiplied out once, rows are added from a block with prefetching,
 * kept buckets are found by a bitmap and its rank, h % buckets is two multiplications, usual tokens need no memory.
 * Cost: linear in the text whatever it is, about 20 us for 1,000 characters with lid.176.ftz (benchmarks/language.py).
 * Memory: the matrices as floats, 3.5 MB for lid.176.ftz; per call 4 bytes per token where the model has n-grams of
 * words. Safety: the file is checked byte by byte; a Classifier is never changed, so threads may share it. The slots of
 * words are fixed by the model, so a text finds the same short runs of them whatever its words are. */
#include "kernel.h"

#include "fasttext_features.h"
#include "fasttext_file.h"
#include "fasttext_output.h"

typedef struct {
    PyObject_HEAD
    Model model;
    PyObject *labels; /* tuple of str */
} Classifier;

static PyObject *make_labels(const Model *m)
{
    PyObject *labels = PyTuple_New(m->labels);
    for (int32_t i = 0; labels && i < m->labels; i++) {
        const uint64_t start = m->starts[m->words + i], stop = m->starts[m->words + i + 1];
        PyObject *label = PyUnicode_DecodeUTF8(m->names + start, (Py_ssize_t)(stop - start), "strict");
        if (!label)
            Py_CLEAR(labels);
        else
            PyTuple_SET_ITEM(labels, i, label);
    }
    return labels;
}

static PyObject *Classifier_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", NULL};
    Py_buffer data;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*:Classifier", names, &data))
        return NULL;
    Classifier *self = (Classifier *)type->tp_alloc(type, 0);
    if (self
        && (read_model(&self->model, data.buf, (size_t)data.len) < 0 || !(self->labels = make_labels(&self->model))))
        Py_CLEAR(self);
    PyBuffer_Release(&data);
    return (PyObject *)self;
}

/* The found labels as a list of (probability, label). */
static PyObject *make_list(const Classifier *self, const Best *best)
{
    PyObject *list = PyList_New(best->count);
    for (int32_t i = 0; list && i < best->count; i++) {
        PyObject *probability = PyFloat_FromDouble((double)expf(best->found[i].score));
        PyObject *pair = probability ? PyTuple_New(2) : NULL;
        if (!pair) {
            Py_XDECREF(probability);
            Py_CLEAR(list);
            break;
        }
        PyTuple_SET_ITEM(pair, 0, probability);
        PyTuple_SET_ITEM(pair, 1, Py_NewRef(PyTuple_GET_ITEM(self->labels, best->found[i].label)));
        PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyObject *predict_bytes(const Classifier *self, const char *text, size_t size, int32_t k, float threshold)
{
    const Model *m = &self->model;
    Line line;
    if (read_line(&line, m, text, size) < 0)
        return PyErr_NoMemory();
    if (!line.count)
        return PyList_New(0);
    if (k == -1)
        k = m->labels;
    if (k < 1)
        return PyErr_Format(PyExc_ValueError, "k: %d given, -1 or at least 1 is allowed", (int)k);
    Found found[MAX_LABELS + 1];
    Best best = {found, 0, k < m->labels ? k : m->labels, threshold};
    if (find_best(m, line.hidden, &best) < 0)
        return PyErr_Format(PyExc_ValueError, "the model's weights are too large: a product is no number");
    return make_list(self, &best);
}

static PyObject *Classifier_predict(Classifier *self, PyObject *args)
{
    PyObject *text, *holder = NULL;
    int k;
    double threshold;
    const char *errors = "strict"; /* labels are decoded when the model is read */
    if (!PyArg_ParseTuple(args, "Uid|s:predict", &text, &k, &threshold, &errors))
        return NULL;
    if (PyUnicode_IS_COMPACT_ASCII(text))
        return predict_bytes(self, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text), k, (float)threshold);
    if (!(holder = PyUnicode_AsUTF8String(text))) /* not AsUTF8AndSize, whose copy lives as long as the text */
        return NULL;
    PyObject *result =
        predict_bytes(self, PyBytes_AS_STRING(holder), (size_t)PyBytes_GET_SIZE(holder), k, (float)threshold);
    Py_DECREF(holder);
    return result;
}

static PyObject *Classifier_labels(Classifier *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->labels); }

static void Classifier_dealloc(Classifier *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free_model(&self->model);
    Py_XDECREF(self->labels);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Whether more letters are capitals than small ones (Unicode's Lu and Ll as CPython has them). */
static PyObject *mostly_capitals(PyObject *Py_UNUSED(module), PyObject *text)
{
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "text: a str is needed");
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    Py_ssize_t capitals = 0, small = 0;
    if (PyUnicode_IS_ASCII(text)) {
        const uint8_t *data = PyUnicode_DATA(text);
        for (Py_ssize_t i = 0; i < length; i++) {
            capitals += (uint8_t)(data[i] - 'A') < 26;
            small += (uint8_t)(data[i] - 'a') < 26;
        }
    } else {
        const int kind = PyUnicode_KIND(text);
        const void *data = PyUnicode_DATA(text);
        for (Py_ssize_t i = 0; i < length; i++) {
            const Py_UCS4 c = PyUnicode_READ(kind, data, i);
            capitals += c < 128 ? c - 'A' < 26 : Py_UNICODE_ISUPPER(c);
            small += c < 128 ? c - 'a' < 26 : Py_UNICODE_ISLOWER(c);
        }
    }
    return PyBool_FromLong(capitals > small);
}

static PyMethodDef functions[] = {
    {"mostly_capitals", mostly_capitals, METH_O, "mostly_capitals(text) -> whether it has more capital than small letters."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef Classifier_methods[] = {
    {"predict", (PyCFunction)Classifier_predict, METH_VARARGS,
     "predict(text, k, threshold, errors='strict') -> [(probability, label)], the best k first (-1: all).\n\n"
     "As fastText's own: one line, which should end with a line break; nothing below threshold; [] for a text of which\n"
     "the model knows nothing. UnicodeEncodeError for lone surrogates, ValueError for another k, MemoryError."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef Classifier_properties[] = {
    {"labels", (getter)Classifier_labels, NULL, "the model's labels, the most frequent first", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot Classifier_slots[] = {
    {Py_tp_doc, "Classifier(data): a supervised fastText model from the bytes of its file, .bin or .ftz.\n\n"
                "ValueError for what is no such file or damaged, NotImplementedError for a sound one that only fastText\n"
                "itself reads, MemoryError."},
    {Py_tp_new, Classifier_new},
    {Py_tp_dealloc, Classifier_dealloc},
    {Py_tp_methods, Classifier_methods},
    {Py_tp_getset, Classifier_properties},
    {0, NULL}};

static PyType_Spec Classifier_spec = {"transforms.native.classifier.Classifier", sizeof(Classifier), 0,
                                      Py_TPFLAGS_DEFAULT, Classifier_slots};

static int load(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Classifier_spec);
    const int failed = !type || PyModule_AddObjectRef(module, "Classifier", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, load}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "classifier", "Prediction of supervised fastText models.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_classifier(void) { return PyModuleDef_Init(&module); }
