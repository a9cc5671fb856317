/* What a syntax tree takes to make, in counts that every machine finds: transforms/code/parse.py has the limits.
 *
 * tree-sitter takes its memory from PyMem_Malloc. A layer over that allocator counts what is asked for. Much of the
 * parser's work shows there alone: its progress callback sees neither how often the stacks of an ambiguous parse are
 * copied nor how often they grow, nor what it tries at an error, which always makes some of its arrays grow.
 *
 * No block ends inside a character: for the rest of one the lexer asks once more, and follows a NULL if it gets nothing.
 *
 * Cost: some nanoseconds for each allocation of the process, from the first Meter on. Memory: none. Safety: arguments
 * are checked at entry, and the text is never read beyond its end. One Meter at a time ends its process. The GIL is held, which PyMem_Malloc needs, too. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <unistd.h>

#define GROWN 1000 /* bytes that it counts when an allocated block is made larger */

static PyMemAllocatorEx below;
static int is_counting;
static uint64_t taken;              /* by the whole process, since counting began */
static uint64_t last = UINT64_MAX;  /* of `taken`: what goes beyond ends the process */
static int code, times;             /* of that end, as a Meter sets it; times: 0 for never */

static void take(uint64_t size)
{
    taken += size;
    if (taken > last)
        _exit(code); /* a parser that gets no memory follows a NULL */
}

static void *count_malloc(void *context, size_t size)
{
    (void)context;
    take(size);
    return below.malloc(below.ctx, size);
}

static void *count_calloc(void *context, size_t items, size_t size)
{
    (void)context;
    take(items * size);
    return below.calloc(below.ctx, items, size);
}

static void *count_realloc(void *context, void *block, size_t size)
{
    (void)context;
    take(size + GROWN);
    return below.realloc(below.ctx, block, size);
}

static void count_free(void *context, void *block)
{
    (void)context;
    below.free(below.ctx, block);
}

/* Once per process; the layer stays. */
static void begin_counting(void)
{
    PyMemAllocatorEx layer = {NULL, count_malloc, count_calloc, count_realloc, count_free};
    if (is_counting)
        return;
    PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &below);
    PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &layer);
    is_counting = 1;
}

typedef struct {
    PyObject_HEAD
    PyObject *data;
    Py_ssize_t block;
    long long calls, reads; /* that are left */
    uint64_t start, most;   /* of `taken` */
} Meter;

static int is_over(const Meter *self) { return self->calls < 0 || self->reads < 0 || taken - self->start > self->most; }

static PyObject *Meter_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"data", "block", "calls", "reads", "memory", NULL};
    PyObject *data;
    Py_ssize_t block;
    long long calls, reads, memory;
    if (!PyArg_ParseTupleAndKeywords(args, named, "SnLLL:Meter", names, &data, &block, &calls, &reads, &memory))
        return NULL;
    if (block < 4)
        return PyErr_Format(PyExc_ValueError, "block: %zd given, 4 or more is allowed", block);
    if (calls < 0 || reads < 0 || memory < 0)
        return PyErr_Format(PyExc_ValueError, "calls, reads, memory: %lld, %lld, %lld given, 0 or more are allowed",
                            calls, reads, memory);
    Meter *self = (Meter *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    begin_counting();
    self->data = Py_NewRef(data);
    self->block = block;
    self->calls = calls;
    self->reads = reads;
    self->start = taken;
    self->most = (uint64_t)memory;
    if (times)
        last = taken + (uint64_t)times * self->most;
    return (PyObject *)self;
}

static PyObject *Meter_read(Meter *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "read: %zd arguments given, offset and point are needed", count);
    const Py_ssize_t offset = PyLong_AsSsize_t(args[0]), size = PyBytes_GET_SIZE(self->data);
    if (offset == -1 && PyErr_Occurred())
        return NULL;
    if (offset < 0)
        return PyErr_Format(PyExc_ValueError, "offset: %zd given, 0 or more is allowed", offset);
    self->reads--;
    if (offset >= size || is_over(self)) /* the end, which no lexer can look beyond */
        return PyBytes_FromStringAndSize(NULL, 0);
    const char *block = PyBytes_AS_STRING(self->data) + offset;
    Py_ssize_t length = size - offset;
    if (length > self->block) {
        length = self->block;
        for (int i = 0; i < 3 && ((uint8_t)block[length] & 0xC0) == 0x80; i++)
            length--;
    }
    return PyBytes_FromStringAndSize(block, length);
}

static PyObject *Meter_is_too_much(Meter *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    self->calls--;
    return PyBool_FromLong(is_over(self));
}

static PyObject *Meter_end(Meter *self, PyObject *Py_UNUSED(nothing))
{
    last = UINT64_MAX;
    return PyBool_FromLong(is_over(self));
}

static PyObject *Meter_is_over(Meter *self, void *Py_UNUSED(closure)) { return PyBool_FromLong(is_over(self)); }

static PyObject *Meter_taken(Meter *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(taken - self->start);
}

static void Meter_dealloc(Meter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    last = UINT64_MAX;
    Py_XDECREF(self->data);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *end_process(PyObject *Py_UNUSED(module), PyObject *args)
{
    int given_times, given_code;
    if (!PyArg_ParseTuple(args, "ii:end_process", &given_times, &given_code))
        return NULL;
    if (given_times < 1 || given_code < 1 || given_code > 125)
        return PyErr_Format(PyExc_ValueError, "times, code: %d, %d given, 1 or more and 1 to 125 are allowed",
                            given_times, given_code);
    times = given_times;
    code = given_code;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"end_process", end_process, METH_VARARGS,
     "end_process(times, code): from now on this process ends with that code where it takes so many times the memory of\n"
     "a Meter before that ends. For a parser that passes its limit between two calls of its callback."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef Meter_methods[] = {
    {"read", (PyCFunction)(void (*)(void))Meter_read, METH_FASTCALL,
     "read(offset, point) -> the block there; b'' at the end, and once a limit is passed. For Parser.parse."},
    {"is_too_much", (PyCFunction)(void (*)(void))Meter_is_too_much, METH_FASTCALL,
     "is_too_much(offset, has_error) -> whether a limit is passed. The progress callback of Parser.parse."},
    {"end", (PyCFunction)Meter_end, METH_NOARGS,
     "end() -> whether a limit was passed. From now on it does not end the process; a tree holds it for long."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef Meter_properties[] = {
    {"is_over", (getter)Meter_is_over, NULL, "whether a limit is passed", NULL},
    {"taken", (getter)Meter_taken, NULL, "bytes asked for since it was made, and GROWN for each block made larger", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot Meter_slots[] = {
    {Py_tp_doc, "Meter(data, block, calls, reads, memory): hands UTF-8 to a parser in blocks of whole characters, and counts.\n\n"
                "calls: of its progress callback. reads: of blocks. memory: bytes that the process asks for, and GROWN\n"
                "for each block of memory that is made larger. ValueError for a block below 4 and limits below 0."},
    {Py_tp_new, Meter_new},
    {Py_tp_dealloc, Meter_dealloc},
    {Py_tp_methods, Meter_methods},
    {Py_tp_getset, Meter_properties},
    {0, NULL}};

static PyType_Spec Meter_spec = {"transforms.native.meter.Meter", sizeof(Meter), 0, Py_TPFLAGS_DEFAULT, Meter_slots};

static int load(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Meter_spec);
    const int failed = !type || PyModule_AddObjectRef(module, "Meter", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, load}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "meter", "What a syntax tree takes to make, in counts.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_meter(void) { return PyModuleDef_Init(&module); }
