/* One pass over a text for Gopher's quality rules, as DCLM's code or dolma's counts. */

#include "counting_stop_words.h"

enum { DCLM = 0, DOLMA = 1 }; /* units */
enum { SHORT_WORD = 256 };    /* characters from which on lengths are kept one by one, for the median */

/* clang-format off */
#define QUALITY_FIELDS(X) \
    X(words) X(word_chars) X(double_median_chars) X(alnum_words) X(alphabetic_words) X(letters) X(spaceless_letters) \
    X(stop_words) X(hashes) X(ellipses) X(lines) X(bullet_lines) X(ellipsis_lines)
/* clang-format on */
#define DECLARE(name) uint64_t name;
typedef struct { QUALITY_FIELDS(DECLARE) } Quality;
#define N_QUALITY (sizeof(Quality) / sizeof(uint64_t))

typedef struct {
    StopWords stop;
    Vector odd, lengths;              /* uint32_t: words to lower later, as start and length; lengths of long words */
    size_t odd_count, lengths_count;
    uint64_t short_lengths[SHORT_WORD];
    size_t dots, dots_end, spaced_end; /* DCLM: dots in a row, where they end; where the last ". . ." does */
} QualityState;

INLINE int push(Vector *vector, size_t *count, size_t value)
{
    if (reserve(vector, *count + 1, sizeof(uint32_t)) < 0)
        return -1;
    ((uint32_t *)vector->items)[(*count)++] = (uint32_t)value;
    return 0;
}

static int by_value(const void *x, const void *y)
{
    const uint32_t left = *(const uint32_t *)x, right = *(const uint32_t *)y;
    return (left > right) - (left < right);
}

/* The length of word `rank`, from the shortest on. */
static uint64_t length_at(const QualityState *s, uint64_t rank)
{
    for (size_t chars = 0; chars < SHORT_WORD; chars++) {
        if (rank < s->short_lengths[chars])
            return chars;
        rank -= s->short_lengths[chars];
    }
    return ((const uint32_t *)s->lengths.items)[rank];
}

INLINE int has_dots_behind(const void *data, int kind, size_t n, size_t i)
{
    return n - i >= 5 && PyUnicode_READ(kind, data, i + 1) == ' ' && PyUnicode_READ(kind, data, i + 2) == '.'
           && PyUnicode_READ(kind, data, i + 3) == ' ' && PyUnicode_READ(kind, data, i + 4) == '.';
}

/* DCLM: a sign inside a word. Occurrences of '#', "...", ". . ." and the ellipsis, each without overlaps. */
INLINE void meet_sign(const void *data, int kind, size_t n, size_t i, uint32_t c, QualityState *s, Quality *k)
{
    if (c == '.') {
        s->dots = i == s->dots_end ? s->dots + 1 : 1;
        s->dots_end = i + 1;
        if (s->dots == 3) {
            k->hashes++;
            s->dots = 0;
        }
        if (i >= s->spaced_end && has_dots_behind(data, kind, n, i)) {
            k->hashes++;
            s->spaced_end = i + 5;
        }
    } else if (c) {
        k->hashes++;
    } else if (i + 1 < n) { /* "\0" parts ASCII's words */
        k->alnum_words += (class_of(PyUnicode_READ(kind, data, i + 1)) & ALNUM) != 0;
    }
}

/* DCLM: a line that is not blank, whose last word ends before `tail`. */
INLINE void end_stripped_line(const void *data, int kind, size_t line, size_t tail, Quality *k)
{
    const uint32_t last = PyUnicode_READ(kind, data, tail - 1);
    int ends = last == ELLIPSIS;
    if (last == '.' && tail - line >= 3 && PyUnicode_READ(kind, data, tail - 3) == '.') {
        const uint32_t between = PyUnicode_READ(kind, data, tail - 2);
        ends = between == '.'
               || (between == ' ' && tail - line >= 5 && has_dots_behind(data, kind, tail, tail - 5)
                   && PyUnicode_READ(kind, data, tail - 5) == '.');
    }
    k->lines++;
    k->ellipsis_lines += ends;
}

INLINE int scan_quality(const void *data, const int kind, size_t n, const int units, QualityState *s, Quality *out)
{
    Quality k = {0};
    size_t i = 0, line = 0, tail = 0; /* tail: the end of the line's last word; 0: none yet */
    unsigned fresh = 1;               /* ASCII's white space stands before, or nothing */
    const unsigned stops = units == DCLM ? SPACE | SIGN : SPACE;
    for (;;) {
        uint32_t c = 0;
        unsigned class = 0;
        for (; i < n; i++) {
            c = PyUnicode_READ(kind, data, i);
            class = class_of(c);
            if (!(class & SPACE))
                break;
            fresh = class & ASCII_GAP;
            if (c != '\n')
                continue;
            if (units == DOLMA) {
                k.lines++;
                k.ellipsis_lines += i > line && PyUnicode_READ(kind, data, i - 1) == ELLIPSIS;
            } else if (tail) {
                end_stripped_line(data, kind, line, tail, &k);
            }
            line = i + 1;
            tail = 0;
        }
        if (i == n)
            break;
        const size_t start = i;
        unsigned seen = 0;
        if (units == DOLMA)
            k.bullet_lines += start == line && (c == '*' || c == '-');
        else
            k.bullet_lines += !tail & ((class & BULLET) != 0);
        k.alnum_words += (fresh != 0) & ((class & ALNUM) != 0); /* no branches: they are hard to predict */
        for (;; i++) {
            while (!(class & stops)) {
                seen |= class;
                if (++i == n)
                    break;
                class = class_of(PyUnicode_READ(kind, data, i));
            }
            if (i == n || (class & SPACE))
                break;
            seen |= class;
            meet_sign(data, kind, n, i, PyUnicode_READ(kind, data, i), s, &k);
            class = i + 1 < n ? class_of(PyUnicode_READ(kind, data, i + 1)) : SPACE;
        }
        const size_t chars = i - start;
        tail = i;
        fresh = 0;
        k.words++;
        k.word_chars += chars;
        k.alphabetic_words += (seen & ALPHA) != 0;
        if (units == DOLMA) {
            k.hashes += (seen & SYMBOL) != 0;
            if (chars < SHORT_WORD)
                s->short_lengths[chars]++;
            else if (push(&s->lengths, &s->lengths_count, chars) < 0)
                return -1;
        }
        if (chars > s->stop.longest)
            continue;
        if (units == DCLM && (seen & ODD_CASE)) {
            if (push(&s->odd, &s->odd_count, start) < 0 || push(&s->odd, &s->odd_count, chars) < 0)
                return -1;
        } else {
            const Word word = {data, start, chars, kind, units == DCLM};
            meet_word(&s->stop, &word);
        }
    }
    if (units == DOLMA) {
        k.alnum_words = k.words;
        k.lines++;
        k.ellipsis_lines += n > line && PyUnicode_READ(kind, data, n - 1) == ELLIPSIS;
        if (s->lengths_count)
            qsort(s->lengths.items, s->lengths_count, sizeof(uint32_t), by_value);
        if (k.words)
            k.double_median_chars = length_at(s, (k.words - 1) / 2) + length_at(s, k.words / 2);
    } else if (tail) {
        end_stripped_line(data, kind, line, tail, &k);
    }
    *out = k;
    return 0;
}

/* The words that DCLM lowers in the light of their other letters, by str.lower. -1 and an exception if that fails. */
static int meet_odd_words(PyObject *text, QualityState *s)
{
    for (size_t i = 0; i < s->odd_count; i += 2) {
        const uint32_t *place = (const uint32_t *)s->odd.items + i;
        PyObject *word = PyUnicode_Substring(text, place[0], (Py_ssize_t)place[0] + place[1]);
        PyObject *lowered = word ? PyObject_CallMethod(word, "lower", NULL) : NULL;
        Py_XDECREF(word);
        if (!lowered)
            return -1;
        const Word found = word_of(lowered, 0);
        if (found.chars <= s->stop.longest)
            meet_word(&s->stop, &found);
        Py_DECREF(lowered);
    }
    return 0;
}
