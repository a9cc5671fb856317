/* Normalisation as a SentencePiece model prescribes it: a compiled map of character sequences, and whitespace.
 *
 * The map (NormalizerSpec.precompiled_charsmap) is a length, a double-array trie of the layout of darts-clone, and the
 * replacements, each ended by a zero byte. At every place the longest sequence that is in the map is replaced; else the
 * character stays. Files are not trusted: a map is taken only if no step can leave the array and every replacement is
 * whole UTF-8, and checked once.
 *
 * The result has a space where SentencePiece writes U+2581, which keeps English words short; it has no other spaces, so
 * nothing is lost. */

#ifndef REFINERY_PIECE_CHARSMAP_H
#define REFINERY_PIECE_CHARSMAP_H

#include "kernel.h"

enum { MAP_RESULTS = 32 }; /* sequences that the library looks at, from the shortest on */

/* How a byte of ASCII begins sequences of the map: with none; with those that no ASCII (but zero) follows; with others. */
enum { PLAIN, PLAIN_BEFORE_ASCII, MAPPED };

typedef struct {
    uint32_t *units; /* NULL without a map */
    size_t size;
    uint8_t *replacements;
    uint8_t ascii[128];
    int prefix, trim; /* add a space in front; take spaces away that follow spaces or stand at an end */
} Normalizer;

static inline uint32_t unit_label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
static inline uint32_t unit_offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
static inline int unit_has_leaf(uint32_t unit) { return unit >> 8 & 1; }

static inline size_t utf8_size(uint8_t first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }
static inline int utf8_inside(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The longest sequence of the map at p: its length in bytes, 0 without one, and its replacement. */
static inline size_t find_sequence(const Normalizer *self, const uint8_t *p, const uint8_t *end,
                                   const uint8_t **replacement) {
    const uint32_t *units = self->units;
    size_t found = 0;
    uint32_t at = unit_offset(units[0]);
    int results = 0;
    for (const uint8_t *q = p; q < end && results < MAP_RESULTS; q++) {
        at ^= *q;
        uint32_t unit = units[at];
        if (unit_label(unit) != *q) break;
        at ^= unit_offset(unit);
        if (unit_has_leaf(unit)) {
            found = (size_t)(q + 1 - p);
            *replacement = self->replacements + (units[at] & ~(1u << 31));
            results++;
        }
    }
    return found;
}

/* Whether steps stay in the array, and leaves name whole replacements. */
static int sound_units(const uint32_t *units, size_t size, const uint8_t *replacements, size_t replaced) {
    for (size_t i = 0; i < size; i++) {
        uint32_t label = unit_label(units[i]);
        if (label > 0xFF) {
            size_t value = units[i] & ~(1u << 31);
            if (i == 0 || value >= replaced || utf8_inside(replacements[value])) return 0;
            continue;
        }
        size_t next = i ^ unit_offset(units[i]);
        if ((next | 0xFF) >= size) return 0;
        if (unit_has_leaf(units[i]) && (i == 0 || unit_label(units[next]) <= 0xFF)) return 0;
    }
    return unit_label(units[0]) == 0 && unit_offset(units[0]) != 0;
}

static void classify_ascii(Normalizer *self) {
    for (uint32_t c = 0; c < 128; c++) {
        self->ascii[c] = PLAIN;
        if (!self->units) continue;
        uint32_t unit = self->units[unit_offset(self->units[0]) ^ c];
        if (unit_label(unit) != c) continue;
        uint32_t children = unit_offset(self->units[0]) ^ c ^ unit_offset(unit);
        self->ascii[c] = unit_has_leaf(unit) ? MAPPED : PLAIN_BEFORE_ASCII;
        for (uint32_t next = 1; next < 128; next++) /* a zero byte is never taken for plain */
            if (unit_label(self->units[children ^ next]) == next) self->ascii[c] = MAPPED;
    }
}

/* Takes over a map. -1 and an exception if it is damaged. */
static int fill_normalizer(Normalizer *self, const uint8_t *map, size_t size) {
    uint32_t trie = 0;
    if (size) {
        if (size > sizeof trie) memcpy(&trie, map, sizeof trie);
        size_t replaced = size > sizeof trie + trie ? size - sizeof trie - trie : 0;
        if (!replaced || trie < 1024 || trie % 1024 || map[size - 1]) {
            PyErr_SetString(PyExc_ValueError, "charsmap: a trie and replacements are needed");
            return -1;
        }
        const uint8_t *replacements = map + sizeof trie + trie;
        PyObject *checked = PyUnicode_DecodeUTF8((const char *)replacements, (Py_ssize_t)replaced, "strict");
        if (!checked) return -1; /* a UnicodeDecodeError, which is a ValueError */
        Py_DECREF(checked);
        self->units = PyMem_RawMalloc(trie);
        self->replacements = PyMem_RawMalloc(replaced);
        if (!self->units || !self->replacements) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(self->units, map + sizeof trie, trie);
        memcpy(self->replacements, replacements, replaced);
        self->size = trie / sizeof(uint32_t);
        if (!sound_units(self->units, self->size, self->replacements, replaced)) {
            PyErr_SetString(PyExc_ValueError, "charsmap: its trie leads out of itself");
            return -1;
        }
    }
    classify_ascii(self);
    return 0;
}

static void free_normalizer(Normalizer *self) {
    PyMem_RawFree(self->units);
    PyMem_RawFree(self->replacements);
}

/* Bytes with room behind them. */
typedef struct {
    uint8_t *bytes;
    size_t size, capacity;
} Buffer;

enum { PADDING = 32 }; /* zero bytes behind a normalised text, so that a word is read in one piece */

/* Room for `more` bytes and the padding. -1 without memory. */
static int grow(Buffer *self, size_t more) {
    if (more + PADDING <= self->capacity - self->size) return 0;
    size_t capacity = self->capacity + self->capacity / 2 + more + PADDING;
    uint8_t *bytes = PyMem_RawRealloc(self->bytes, capacity);
    if (!bytes) return -1;
    self->bytes = bytes;
    self->capacity = capacity;
    return 0;
}

/* Appends `n` bytes of a text, or what replaced them, with spaces for U+2581; there is room. */
static inline void append_spaced(Buffer *self, const uint8_t *p, size_t n) {
    uint8_t *out = self->bytes + self->size;
    for (size_t i = 0; i < n; i++) {
        int mark = p[i] == 0xE2 && n - i >= 3 && p[i + 1] == 0x96 && p[i + 2] == 0x81;
        *out++ = mark ? ' ' : p[i];
        i += mark ? 2 : 0;
    }
    self->size = (size_t)(out - self->bytes);
}

/* Appends ASCII that stays as it is and that ASCII follows; returns where that ends. skip: see `normalize`. */
static inline const uint8_t *copy_plain(const Normalizer *self, const uint8_t *p, const uint8_t *end, Buffer *out,
                                        int *skip) {
    uint8_t *to = out->bytes + out->size;
    int skipping = *skip;
    for (; end - p > 1 && *p < 128 && self->ascii[*p] != MAPPED && p[1] - 1u < 127; p++) {
        int space = *p == ' ';
        *to = *p;
        to += !(space & skipping);
        skipping = space & self->trim;
    }
    out->size = (size_t)(to - out->bytes);
    *skip = skipping;
    return p;
}

/* Normalises a text into `out`, which is emptied first. -1 without memory.
 *
 * There is always room for the rest of the text as it stands, so that only what grows looks for more. */
static int normalize(const Normalizer *self, const uint8_t *p, const uint8_t *end, Buffer *out) {
    static const uint8_t lost[] = {0xEF, 0xBF, 0xBD};
    int skip = self->trim; /* whether spaces that come now are left out */
    int empty = self->trim; /* whether nothing but spaces has come */
    out->size = 0;
    if (grow(out, (size_t)(end - p) + 1)) return -1;
    if (p < end && !self->trim && self->prefix) out->bytes[out->size++] = ' ';
    if (!self->units && !self->trim) {
        append_spaced(out, p, (size_t)(end - p));
        p = end;
    }
    while (p < end) {
        if (!empty) p = copy_plain(self, p, end, out, &skip);
        if (p == end) break;
        const uint8_t *from = p;
        size_t n, used;
        uint8_t kind = *p < 128 ? self->ascii[*p] : (uint8_t)MAPPED;
        if (kind == PLAIN || (kind == PLAIN_BEFORE_ASCII && p + 1 < end && p[1] - 1u < 127)) {
            n = used = 1;
        } else if (self->units && (used = find_sequence(self, p, end, &from))) {
            n = strlen((const char *)from);
        } else if (utf8_inside(*p)) { /* behind a sequence that ended within a character */
            from = lost;
            n = sizeof lost;
            used = 1;
        } else {
            n = used = utf8_size(*p);
        }
        p += used;
        if (empty && n == 1 && *from == ' ') continue;
        if (empty && self->prefix) out->bytes[out->size++] = ' ';
        empty = 0;
        while (skip && n && *from == ' ') from++, n--;
        if (!n) continue;
        if (n > used && grow(out, n + (size_t)(end - p))) return -1;
        append_spaced(out, from, n);
        skip = self->trim && from[n - 1] == ' ';
    }
    while (self->trim && out->size && out->bytes[out->size - 1] == ' ') out->size--;
    memset(out->bytes + out->size, 0, PADDING);
    return 0;
}

#endif
