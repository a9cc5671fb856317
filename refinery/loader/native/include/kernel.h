/* What all kernels share: functions compiled for several processors, and the checks of arguments at entry.
 *
 * A kernel takes its arrays with take_arrays and its integers with read_integer. Behind these every array is there,
 * contiguous, aligned, of the type that the kernel reads, and overlaps none that the kernel writes; what arrays say
 * about each other (lengths, ascending offsets) the kernel checks itself. A wrong argument raises ValueError with a
 * sentence that names it, an object of another kind TypeError. An array must not be written by another thread during
 * the call: the GIL is released, as numpy does. Cost: a few comparisons per array. */

#ifndef REFINERY_KERNEL_H
#define REFINERY_KERNEL_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are little-endian"
#endif

#define INLINE static inline __attribute__((always_inline))
#define CHECK static __attribute__((noinline, unused)) /* not cold: that would spread to the loops behind it */

/* VECTORISED: compile a function for several widths of vector registers, and take the widest of the machine.
 * WITH_POPCNT: the same for the instruction that counts bits. Sanitizers want one version of each function. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \
    && !defined(__SANITIZE_ADDRESS__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#define WITH_POPCNT __attribute__((target_clones("popcnt", "default")))
#else
#define VECTORISED
#define WITH_POPCNT
#endif

#define LINE 64 /* bytes of a cache line; elsewhere what depends on it costs time alone */

/* Bytes from an address to the next cache line; 0 at the beginning of one. */
INLINE Py_ssize_t to_line(const void *address) { return (Py_ssize_t)(-(uintptr_t)address & (LINE - 1)); }

/* Asks for the line that is written some lines behind `address`: a batch is larger than the near cache, so a store would
 * wait for the line that it is to replace. Behind an array's end it does nothing. */
INLINE void ask_ahead(const void *address) { __builtin_prefetch((const uint8_t *)address + 32 * LINE, 1); }

/* An array's element type. FLAG: bool or uint8. RAW32: uint32, or the bytes of such, at any address. */
enum { FLAG, UINT16, UINT32, INT32, INT64, UINT64, RAW32 };
enum { WRITTEN = 1, OPTIONAL = 2 }; /* how an array is used: the kernel writes to it; None may stand for it */

typedef struct {
    const char *name;
    int type, use;
} Array;

static const struct {
    const char *name, *formats; /* of struct; those of numpy and of memoryview */
    Py_ssize_t size;
} ELEMENT_TYPES[] = {
    {"bool or uint8", "?Bc", 1}, {"uint16", "H", 2}, {"uint32", "IL", 4},
    {"int32", "il", 4},          {"int64", "lq", 8}, {"uint64", "LQ", 8}, {"uint32", "IL", 4},
};

/* Whether the elements of `view` are of that type, in this machine's order of bytes. */
CHECK int has_type(const Py_buffer *view, int type)
{
    const char *format = view->format ? view->format : "B";
    if (type == RAW32 && view->itemsize == 1 && view->len % 4 == 0 && !strcmp(format, "B"))
        return 1;
    format += *format == '<' || *format == '=' || *format == '@';
    return view->itemsize == ELEMENT_TYPES[type].size && *format && !format[1]
           && strchr(ELEMENT_TYPES[type].formats, *format) != NULL;
}

/* Fills `view` from `given`. -1 and an exception if it is not what `array` describes; `view` is empty then. */
CHECK int take_array(const Array *array, PyObject *given, Py_buffer *view)
{
    const char *fault = NULL;
    memset(view, 0, sizeof *view);
    if ((array->use & OPTIONAL) && given == Py_None)
        return 0;
    if (PyObject_GetBuffer(given, view, PyBUF_FULL_RO) < 0)
        return -1;
    if (!has_type(view, array->type))
        fault = "of another type";
    else if (!PyBuffer_IsContiguous(view, 'C'))
        fault = "with gaps";
    else if (array->type != RAW32 && view->len && (uintptr_t)view->buf % (uintptr_t)view->itemsize)
        fault = "at an address that is not aligned";
    else if ((array->use & WRITTEN) && view->readonly)
        fault = "that is read-only";
    if (!fault)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: an array %s given (format %.20s), a contiguous, aligned%s array of %s is needed", array->name,
                 fault, view->format ? view->format : "B", array->use & WRITTEN ? ", writable" : "",
                 ELEMENT_TYPES[array->type].name);
    PyBuffer_Release(view);
    return -1;
}

CHECK int overlap(const Py_buffer *x, const Py_buffer *y)
{
    return x->len && y->len && (uintptr_t)x->buf < (uintptr_t)y->buf + (size_t)y->len
           && (uintptr_t)y->buf < (uintptr_t)x->buf + (size_t)x->len;
}

CHECK void release_arrays(Py_buffer *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&views[i]);
}

/* Fills `views`, one per array. -1 and an exception, with nothing held, if one is wrong or overlaps a written one. */
CHECK int take_arrays(const Array *arrays, PyObject *const *given, Py_buffer *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (take_array(&arrays[i], given[i], &views[i]) < 0) {
            release_arrays(views, i);
            return -1;
        }
        for (size_t j = 0; j < i; j++)
            if (((arrays[i].use | arrays[j].use) & WRITTEN) && overlap(&views[i], &views[j])) {
                PyErr_Format(PyExc_ValueError, "%s and %s: arrays that share memory given, separate ones are needed",
                             arrays[j].name, arrays[i].name);
                release_arrays(views, i + 1);
                return -1;
            }
    }
    return 0;
}

/* -1 and a ValueError unless `value` is within the bounds. */
CHECK int check_range(const char *name, int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %lld given, %lld to %lld is allowed", name, (long long)value, (long long)low,
                 (long long)high);
    return -1;
}

/* An integer of any size and class, numpy's included. -1 and an exception if it is none or out of bounds. */
CHECK int read_integer(PyObject *given, const char *name, int64_t low, int64_t high, int64_t *value)
{
    PyObject *integer = PyNumber_Index(given);
    int overflow = 0;
    if (!integer)
        return -1;
    *value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    Py_DECREF(integer);
    if (*value == -1 && PyErr_Occurred())
        return -1;
    if (!overflow)
        return check_range(name, *value, low, high);
    PyErr_Format(PyExc_ValueError, "%s: a number %s 64 bits given, %lld to %lld is allowed", name,
                 overflow > 0 ? "above" : "below", (long long)low, (long long)high);
    return -1;
}

/* -1 and a ValueError unless `values` ascend from 0 to `end`, and no step is above `step`. `count` is 1 or more. */
CHECK int check_ascending(const char *name, const int64_t *values, Py_ssize_t count, int64_t end, int64_t step)
{
    int good = count > 0 && values[0] == 0 && values[count - 1] == end;
    for (Py_ssize_t i = 1; good && i < count; i++) /* none below 0, so that differences do not overflow */
        good = values[i] >= values[i - 1] && values[i] - values[i - 1] <= step;
    if (good)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: ascending values from 0 to %lld are needed", name, (long long)end);
    return -1;
}

#endif
