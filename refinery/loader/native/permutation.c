/* The keyed bijection of [0, n) that orders samples, as loader/order/order.py defines it.
 *
 * Cost: one pass; a value goes through the network of eight rounds fewer than two times on average, because the network
 * has fewer than 2 n values (at most 32 where n is small). Safety: arrays are checked at entry, every value against its
 * n while it is read: one that is not below n might never come back below it. The GIL is released. */

#include "kernel.h"

#define ROUNDS 8 /* this and the next ones as in loader/order/order.py */
#define MIN_BITS 5
#define MAX_VALUES (1LL << 52)
#define BLOCK 128 /* values that go through the network together */

/* Values at work, side by side, so that several go through the network at once. */
typedef struct {
    uint64_t value[BLOCK], n[BLOCK], tweak[BLOCK], low_bits[BLOCK], high_bits[BLOCK]; /* bits of the two halves */
    int64_t place[BLOCK];
} Block;

INLINE uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* One pass of the first `size` values through the network. */
VECTORISED static void forwards(Block *restrict b, int size, const uint64_t *restrict keys)
{
    for (int j = 0; j < size; j++) {
        const uint64_t tweak = b->tweak[j], low_bits = b->low_bits[j], high_bits = b->high_bits[j];
        uint64_t high = b->value[j] >> low_bits, low = b->value[j] ^ high << low_bits;
        for (int i = 0; i < ROUNDS; i += 2) {
            high ^= mix((low + keys[i]) ^ tweak) >> (64 - high_bits);
            low ^= mix((high + keys[i + 1]) ^ tweak) >> (64 - low_bits);
        }
        b->value[j] = high << low_bits | low;
    }
}

/* Its inverse. */
VECTORISED static void backwards(Block *restrict b, int size, const uint64_t *restrict keys)
{
    for (int j = 0; j < size; j++) {
        const uint64_t tweak = b->tweak[j], low_bits = b->low_bits[j], high_bits = b->high_bits[j];
        uint64_t high = b->value[j] >> low_bits, low = b->value[j] ^ high << low_bits;
        for (int i = ROUNDS - 2; i >= 0; i -= 2) {
            low ^= mix((high + keys[i + 1]) ^ tweak) >> (64 - low_bits);
            high ^= mix((low + keys[i]) ^ tweak) >> (64 - high_bits);
        }
        b->value[j] = high << low_bits | low;
    }
}

/* Writes the values that are below their n, and keeps the others in front. How many are left. */
static int write_done(Block *b, int size, uint64_t *out)
{
    int left = 0;
    for (int j = 0; j < size; j++) {
        out[b->place[j]] = b->value[j]; /* written again after the next pass, if need be */
        b->value[left] = b->value[j], b->n[left] = b->n[j], b->tweak[left] = b->tweak[j];
        b->low_bits[left] = b->low_bits[j], b->high_bits[left] = b->high_bits[j], b->place[left] = b->place[j];
        left += b->value[j] >= b->n[j];
    }
    return left;
}

/* Passes through the network; -1 - i where value i is wrong. n and tweak: one value, or one for each of x. */
static int64_t permute_all(const uint64_t *x, int64_t size, const uint64_t *n, int64_t each_n, const uint64_t *tweak,
                           int64_t each_tweak, const uint64_t *keys, int inverse, uint64_t *out)
{
    Block b;
    int64_t passes = 0;
    for (int64_t i = 0; i < size;) {
        int live = 0;
        for (; live < BLOCK && i < size; i++) {
            const uint64_t count = n[i * each_n];
            if (count > MAX_VALUES || x[i] >= count)
                return -1 - i;
            out[i] = 0; /* the only value of n = 1 */
            if (count > 1) {
                const uint64_t needed = 64 - (uint64_t)__builtin_clzll(count - 1);
                const uint64_t bits = needed < MIN_BITS ? MIN_BITS : needed;
                b.value[live] = x[i], b.n[live] = count, b.tweak[live] = tweak[i * each_tweak], b.place[live] = i;
                b.low_bits[live] = (bits + 1) / 2, b.high_bits[live] = bits / 2;
                live++;
            }
        }
        while (live) {
            passes += live;
            (inverse ? backwards : forwards)(&b, live, keys);
            live = write_done(&b, live, out);
        }
    }
    return passes;
}

/* permute(x, n, keys, tweak, inverse, out) -> passes */
static PyObject *permute(PyObject *module, PyObject *args)
{
    enum { X, N, KEYS, TWEAK, OUT, BUFFERS };
    static const Array arrays[] = {
        {"x", UINT64, 0}, {"n", UINT64, 0}, {"keys", UINT64, 0}, {"tweak", UINT64, 0}, {"out", UINT64, WRITTEN},
    };
    Py_buffer b[BUFFERS];
    PyObject *given[BUFFERS], *result = NULL;
    int inverse;
    int64_t passes;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOpO", &given[X], &given[N], &given[KEYS], &given[TWEAK], &inverse, &given[OUT])
        || take_arrays(arrays, given, b, BUFFERS) < 0)
        return NULL;
    const int64_t size = b[X].len / 8, sizes = b[N].len / 8, tweaks = b[TWEAK].len / 8;
    if (b[KEYS].len / 8 != ROUNDS || b[OUT].len != b[X].len || (sizes != 1 && sizes != size)
        || (tweaks != 1 && tweaks != size)) {
        PyErr_Format(PyExc_ValueError, "keys, x, out, n, tweak: %lld, %lld, %lld, %lld and %lld values given, %d keys, as "
                     "many of out as of x and one of n and tweak, or as many, are needed", (long long)(b[KEYS].len / 8),
                     (long long)size, (long long)(b[OUT].len / 8), (long long)sizes, (long long)tweaks, ROUNDS);
        goto done;
    }
    const uint64_t *x = b[X].buf, *n = b[N].buf, *keys = b[KEYS].buf, *tweak = b[TWEAK].buf;
    uint64_t *out = b[OUT].buf;
    Py_BEGIN_ALLOW_THREADS
    passes = permute_all(x, size, n, sizes != 1, tweak, tweaks != 1, keys, inverse, out);
    Py_END_ALLOW_THREADS
    if (passes >= 0)
        result = PyLong_FromLongLong(passes);
    else {
        const int64_t wrong = -1 - passes;
        PyErr_Format(PyExc_ValueError, "x and n: value %lld is %llu of %llu, values below n are needed, and n to 2^52",
                     (long long)wrong, (unsigned long long)x[wrong], (unsigned long long)n[sizes != 1 ? wrong : 0]);
    }
done:
    release_arrays(b, BUFFERS);
    return result;
}

static PyMethodDef methods[] = {
    {"permute", permute, METH_VARARGS, "permute(x, n, keys, tweak, inverse, out) -> passes through the network"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "permutation", "The keyed bijection behind the order of samples.", 0, methods, NULL, NULL,
    NULL, NULL,
};

PyMODINIT_FUNC PyInit_permutation(void) { return PyModuleDef_Init(&module); }
