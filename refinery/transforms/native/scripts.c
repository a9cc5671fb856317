/* The table of scripts that are written without spaces (include/scripts.h), for Python.
 *
 * Cost: one tuple, made per call. Safety: takes no argument and reads a constant. */

#include "kernel.h"
#include "scripts.h"

/* unspaced() -> ((first, last), ...): ranges of code points, ascending. */
static PyObject *unspaced(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *ranges = PyTuple_New((Py_ssize_t)UNSPACED_RANGES);
    for (size_t i = 0; ranges && i < UNSPACED_RANGES; i++) {
        PyObject *range = Py_BuildValue("II", UNSPACED[i][0], UNSPACED[i][1]);
        if (range)
            PyTuple_SET_ITEM(ranges, (Py_ssize_t)i, range);
        else
            Py_CLEAR(ranges);
    }
    return ranges;
}

static PyMethodDef methods[] = {
    {"unspaced", unspaced, METH_NOARGS,
     "unspaced() -> ((first, last), ...): code points of the scripts that are written without spaces, ascending."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "scripts", "Scripts written without spaces.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_scripts(void) { return PyModuleDef_Init(&module); }
