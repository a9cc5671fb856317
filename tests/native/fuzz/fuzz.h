/* What the fuzzers of the kernels share: an interpreter inside the fuzzer, and texts out of bytes.
 *
 * A fuzzer includes the kernel that it drives, so that its code is instrumented, and calls it as Python does: by import
 * and attribute. sanitize.sh compiles and runs them. */

#include "kernel.h"

/* Starts Python with memory straight from malloc, where AddressSanitizer sees the end of every object. */
static PyObject *start(const char *name, PyObject *(*init)(void))
{
    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    before.allocator = PYMEM_ALLOCATOR_MALLOC;
    PyObject *module = NULL;
    if (!PyStatus_Exception(Py_PreInitialize(&before)) && PyImport_AppendInittab(name, init) == 0) {
        Py_InitializeEx(0);
        module = PyImport_ImportModule(name);
    }
    if (!module)
        abort();
    return module;
}

/* Bytes as a str: by its first byte in one of four codings, so that all three widths of characters and lone surrogates
 * occur. */
static PyObject *text_of(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data + 1;
    const Py_ssize_t rest = (Py_ssize_t)size - 1;
    if (size == 0)
        return PyUnicode_New(0, 0);
    if (data[0] % 4 == 0)
        return PyUnicode_DecodeLatin1(bytes, rest, NULL);
    if (data[0] % 4 == 1)
        return PyUnicode_Decode(bytes, rest / 2 * 2, "utf-16-le", "surrogatepass");
    return PyUnicode_DecodeUTF8(bytes, rest, data[0] % 4 == 2 ? "surrogateescape" : "replace");
}

/* Python's own exceptions for bad arguments are answers; anything else is a fault. */
static PyObject *answer(PyObject *result)
{
    if (!result) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
            PyErr_Print();
            abort();
        }
        PyErr_Clear();
    }
    return result;
}

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s does not hold\n", what);
        if (PyErr_Occurred())
            PyErr_Print();
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
