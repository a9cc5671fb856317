/* Any arrays: sets, offsets and starts as the bytes have them, wrong ones most of the time. */
#include "../../../transforms/native/jaccard.c"

#include "fuzz.h"

enum { SETS = 12, GROUPS = 4 };

static PyObject *view_of(void *memory, size_t size, const char *type)
{
    PyObject *view = PyMemoryView_FromMemory(memory, (Py_ssize_t)size, PyBUF_WRITE), *cast;
    require(view && (cast = PyObject_CallMethod(view, "cast", "s", type)), "a view");
    Py_DECREF(view);
    return cast;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static PyObject *kernel;
    if (!kernel)
        kernel = start("jaccard", PyInit_jaccard);
    if (size < SETS + GROUPS + 2)
        return 0;
    int64_t offsets[SETS + 1] = {0}, starts[GROUPS + 1] = {0};
    const size_t count = (size - SETS - GROUPS - 2) / 2, bytes = count * sizeof(uint32_t);
    uint32_t *values = malloc(bytes + 1), representative[SETS], shared[SETS];
    require(values != NULL, "memory");
    for (int i = 0; i < SETS; i++) /* steps of -16 to 47, often ascending, and the end where it belongs */
        offsets[i + 1] = offsets[i] + data[i] % 64 - (data[0] % 8 == 6 ? 16 : 0);
    if (data[0] % 8 != 7)
        offsets[SETS] = (int64_t)count;
    for (int i = 0; i < GROUPS; i++)
        starts[i + 1] = i + 1 < GROUPS || data[0] % 8 == 5 ? starts[i] + data[SETS + i] % 5 : SETS;
    for (size_t i = 0; i < count; i++) /* ascending where steps do not pass the end of the type */
        values[i] = (i ? values[i - 1] : 0) + 1 + data[SETS + GROUPS + 2 + i] * 65537u;
    PyObject *arguments[] = {view_of(values, bytes, "I"), view_of(offsets, sizeof offsets, "q"),
                             view_of(starts, sizeof starts, "q"), view_of(representative, sizeof representative, "I"),
                             view_of(shared, sizeof shared, "I")};
    PyObject *done = answer(PyObject_CallMethod(kernel, "cluster", "OOOdOO", arguments[0], arguments[1], arguments[2],
                                                (1 + data[SETS + GROUPS]) / 256.0, arguments[3], arguments[4]));
    for (int i = 0; done && i < SETS; i++)
        require(representative[i] <= (uint32_t)i && shared[i] <= offsets[i + 1] - offsets[i], "an earlier set");
    for (int i = 0; i < 5; i++)
        Py_DECREF(arguments[i]);
    Py_XDECREF(done);
    free(values);
    return 0;
}
