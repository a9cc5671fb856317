/* Tables made once when the module is loaded: elements and site words by hash, an Aho-Corasick automaton of class
 * words, the character references of the HTML standard (from Python's html.entities). None of them grows later, so what
 * a page looks up costs a bounded number of steps. */

#ifndef REFINERY_HTMLBLOCKS_TABLES_H
#define REFINERY_HTMLBLOCKS_TABLES_H

#include "htmlblocks_names.h"

enum {
    ELEMENT_SLOTS = 1024, SITE_SLOTS = 1024, REFERENCE_SLOTS = 8192, STATES = 2048, LETTERS = 27, LONGEST_REFERENCE = 33,
};

static int16_t element_slots[ELEMENT_SLOTS]; /* number of the element + 1 */
static uint32_t element_hashes[sizeof ELEMENTS / sizeof *ELEMENTS];
static uint32_t site_slots[SITE_SLOTS];
static uint16_t next_state[STATES][LETTERS];
static uint64_t state_groups[STATES];
static struct {
    uint32_t hash;
    uint8_t size, length;
    char name[34], text[10];
} references[REFERENCE_SLOTS];

static inline int letter_of(uint8_t c)
{
    const uint8_t lower = c | 32;
    return lower >= 'a' && lower <= 'z' ? lower - 'a' + 1 : 0;
}

static void make_automaton(void)
{
    uint16_t states = 1, fail[STATES] = {0}, queue[STATES];
    size_t head = 0, tail = 0;
    for (size_t w = 0; w < sizeof WORDS / sizeof *WORDS; w++) {
        uint16_t state = 0;
        for (const char *c = WORDS[w].word; *c; c++) {
            uint16_t *next = &next_state[state][letter_of((uint8_t)*c)];
            state = *next ? *next : (*next = states++);
        }
        state_groups[state] |= (uint64_t)1 << WORDS[w].group;
    }
    for (int c = 0; c < LETTERS; c++)
        if (next_state[0][c])
            queue[tail++] = next_state[0][c];
    while (head < tail) {
        const uint16_t state = queue[head++];
        for (int c = 0; c < LETTERS; c++) {
            const uint16_t next = next_state[state][c], other = next_state[fail[state]][c];
            if (!next) {
                next_state[state][c] = other;
                continue;
            }
            fail[next] = other;
            state_groups[next] |= state_groups[other];
            queue[tail++] = next;
        }
    }
}

static void make_hashes(void)
{
    for (size_t i = 0; i < sizeof ELEMENTS / sizeof *ELEMENTS; i++) {
        const uint32_t hash = name_hash((const uint8_t *)ELEMENTS[i].name, strlen(ELEMENTS[i].name));
        uint32_t slot = hash % ELEMENT_SLOTS;
        while (element_slots[slot])
            slot = (slot + 1) % ELEMENT_SLOTS;
        element_slots[slot] = (int16_t)(i + 1);
        element_hashes[i] = hash;
    }
    for (size_t i = 0; i < sizeof SITE_WORDS / sizeof *SITE_WORDS; i++) {
        const uint32_t hash = name_hash((const uint8_t *)SITE_WORDS[i], strlen(SITE_WORDS[i]));
        uint32_t slot = hash % SITE_SLOTS;
        while (site_slots[slot])
            slot = (slot + 1) % SITE_SLOTS;
        site_slots[slot] = hash;
    }
}

static inline uint32_t reference_hash(const uint8_t *name, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ name[i]) * 16777619u;
    return hash;
}

/* Takes html.entities.html5: {"amp;": "&", "amp": "&", ...}. -1 and an exception if it is not as expected. */
static int make_references(void)
{
    PyObject *module = PyImport_ImportModule("html.entities"), *key, *value;
    PyObject *table = module ? PyObject_GetAttrString(module, "html5") : NULL;
    Py_ssize_t at = 0, count = 0;
    while (table && PyDict_Check(table) && PyDict_Next(table, &at, &key, &value)) {
        Py_ssize_t size, length;
        const char *name = PyUnicode_AsUTF8AndSize(key, &size);
        const char *text = name ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;
        if (!text || size > LONGEST_REFERENCE || length > 10 || ++count > REFERENCE_SLOTS / 2)
            break;
        const uint32_t hash = reference_hash((const uint8_t *)name, (size_t)size);
        uint32_t slot = hash % REFERENCE_SLOTS;
        while (references[slot].size)
            slot = (slot + 1) % REFERENCE_SLOTS;
        references[slot].hash = hash;
        references[slot].size = (uint8_t)size;
        references[slot].length = (uint8_t)length;
        memcpy(references[slot].name, name, (size_t)size);
        memcpy(references[slot].text, text, (size_t)length);
    }
    const int good = table && PyDict_Check(table) && count == PyDict_GET_SIZE(table);
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "html.entities.html5: not the table that was expected");
    Py_XDECREF(table);
    Py_XDECREF(module);
    return good ? 0 : -1;
}

static inline const Element *find_element(const uint8_t *name, size_t size, uint32_t hash)
{
    for (uint32_t slot = hash % ELEMENT_SLOTS; element_slots[slot]; slot = (slot + 1) % ELEMENT_SLOTS) {
        const int at = element_slots[slot] - 1;
        if (element_hashes[at] == hash && strlen(ELEMENTS[at].name) == size
            && !strncasecmp(ELEMENTS[at].name, (const char *)name, size))
            return &ELEMENTS[at];
    }
    return NULL;
}

static inline int is_site_word(uint32_t hash)
{
    for (uint32_t slot = hash % SITE_SLOTS; site_slots[slot]; slot = (slot + 1) % SITE_SLOTS)
        if (site_slots[slot] == hash)
            return 1;
    return 0;
}

/* Groups of the words in an attribute's value. */
static uint64_t groups_of(const uint8_t *value, size_t size)
{
    uint64_t groups = 0;
    uint16_t state = next_state[0][0];
    int lower = 0;
    for (size_t i = 0; i < size; i++) {
        const uint8_t c = value[i];
        if (lower && c >= 'A' && c <= 'Z') {
            state = next_state[state][0];
            groups |= state_groups[state];
        }
        lower = c >= 'a' && c <= 'z';
        state = next_state[state][letter_of(c)];
        groups |= state_groups[state];
    }
    return groups | state_groups[next_state[state][0]];
}

#endif
