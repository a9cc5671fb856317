/* How often a text has the words of some lists: a table of these words, asked for every short word of the text.
 *
 * The table holds what a recipe names, so no text can make it slow. Words with equal hashes are compared, character by
 * character. */

#include "counting_spans.h"

typedef struct { PyObject *word; uint64_t hash, count; } StopWord; /* word: borrowed from the lists */
typedef struct {
    Vector words, slots; /* StopWord; uint32_t, 0: free, else a number in `words` and 1 */
    size_t mask, count, longest;
    uint64_t lengths, firsts; /* bits of the lengths (63: that and more) and first characters that words have */
} StopWords;

/* What a word is read from: a text's characters as they are or lowered, or a stop word. */
typedef struct { const void *data; size_t start, chars; int kind, lower; } Word;

INLINE uint32_t word_character(const Word *word, size_t i)
{
    const uint32_t c = PyUnicode_READ(word->kind, word->data, word->start + i);
    return word->lower ? lower_of(c) : c;
}

INLINE uint64_t word_hash(const Word *word)
{
    uint64_t hash = HASH_SEED;
    for (size_t i = 0; i < word->chars; i++)
        hash = (hash ^ word_character(word, i)) * WORD_PRIME;
    return mix(hash);
}

/* The slot of a word: its own, or the free one where it would be. */
INLINE uint32_t *find_slot(const StopWords *s, const Word *word)
{
    const uint64_t hash = word_hash(word);
    uint32_t *slots = s->slots.items;
    for (size_t at = hash & s->mask;; at = (at + 1) & s->mask) {
        if (!slots[at])
            return &slots[at];
        const StopWord *stop = (const StopWord *)s->words.items + slots[at] - 1;
        if (stop->hash != hash || (size_t)PyUnicode_GET_LENGTH(stop->word) != word->chars)
            continue;
        size_t i = 0;
        while (i < word->chars && PyUnicode_READ_CHAR(stop->word, (Py_ssize_t)i) == word_character(word, i))
            i++;
        if (i == word->chars)
            return &slots[at];
    }
}

static Word word_of(PyObject *text, int lower)
{
    return (Word){PyUnicode_DATA(text), 0, (size_t)PyUnicode_GET_LENGTH(text), (int)PyUnicode_KIND(text), lower};
}

/* Counts a word of the text, if it is one of the list. */
INLINE void meet_word(StopWords *s, const Word *word)
{
    const uint64_t length = s->lengths >> (word->chars < 63 ? word->chars : 63);
    if (!(length & s->firsts >> (word_character(word, 0) & 63) & 1)) /* one branch for both */
        return;
    const uint32_t *slot = find_slot(s, word);
    if (*slot)
        ((StopWord *)s->words.items)[*slot - 1].count++;
}

/* -1 and an exception unless `lists` is a tuple of tuples of str, or if there is no memory. */
static int make_stop_words(PyObject *lists, StopWords *s)
{
    size_t most = 0, slots = 16;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
        PyObject *list = PyTuple_GET_ITEM(lists, i);
        int good = PyTuple_Check(list);
        for (Py_ssize_t j = 0; good && j < PyTuple_GET_SIZE(list); j++)
            good = PyUnicode_Check(PyTuple_GET_ITEM(list, j)) && PyUnicode_READY(PyTuple_GET_ITEM(list, j)) == 0;
        if (!good) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "stop_words: a tuple of tuples of str is needed");
            return -1;
        }
        most += (size_t)PyTuple_GET_SIZE(list);
    }
    while (slots < 2 * most)
        slots *= 2;
    s->count = s->longest = 0;
    s->lengths = s->firsts = 0;
    s->mask = slots - 1;
    if (reserve(&s->words, most, sizeof(StopWord)) < 0 || reserve(&s->slots, slots, sizeof(uint32_t)) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    memset(s->slots.items, 0, slots * sizeof(uint32_t));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
        PyObject *list = PyTuple_GET_ITEM(lists, i);
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(list); j++) {
            PyObject *stop = PyTuple_GET_ITEM(list, j);
            const Word word = word_of(stop, 0);
            uint32_t *slot = find_slot(s, &word);
            if (!word.chars || *slot)
                continue;
            ((StopWord *)s->words.items)[s->count] = (StopWord){stop, word_hash(&word), 0};
            *slot = (uint32_t)++s->count;
            s->longest = word.chars > s->longest ? word.chars : s->longest;
            s->lengths |= UINT64_C(1) << (word.chars < 63 ? word.chars : 63);
            s->firsts |= UINT64_C(1) << (word_character(&word, 0) & 63);
        }
    }
    return 0;
}

/* The most occurrences of the words of one list. */
static uint64_t most_stop_words(PyObject *lists, const StopWords *s)
{
    uint64_t most = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
        PyObject *list = PyTuple_GET_ITEM(lists, i);
        uint64_t hits = 0;
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(list); j++) {
            const Word word = word_of(PyTuple_GET_ITEM(list, j), 0);
            const uint32_t *slot = find_slot(s, &word);
            hits += *slot ? ((const StopWord *)s->words.items)[*slot - 1].count : 0;
        }
        most = hits > most ? hits : most;
    }
    return most;
}
