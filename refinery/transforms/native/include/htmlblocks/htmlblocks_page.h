/* A page's blocks and elements with what features need to know of all of them: sums, groups of equal or like places,
 * headings, where the prose is. Linear in blocks and elements; groups by hash tables with a keyed hash. */

#ifndef REFINERY_HTMLBLOCKS_PAGE_H
#define REFINERY_HTMLBLOCKS_PAGE_H

#include "htmlblocks_output.h"
#include "htmlblocks_words.h"
#include "keyed_hash.h"
#include <math.h>

enum { S_SIZE, S_LINKED, S_SENTENCES, S_PROSE, S_HEADINGS, S_MONEY, S_IMAGES, S_SAID, S_SAYING, S_KNOWN, SUMS };
enum { LEVELS = 6, FULL_LEVELS = 4, NEIGHBOURS = 3, SHARES = 3, MOST_PAGE = 64, OWN_PAGE = 27, MOST_WIDTH = 512,
       BASE_WIDTH = 282 /* features that are not values of the caller */ };

static HashKey group_key;

typedef struct {
    double count, size, linked, sentences, prose, blocks, squares;
} Group;

typedef struct {
    const int32_t *blocks, *elements, *said, *titles;
    const uint8_t *near;
    const float *given; /* values of the page that the caller knows */
    Py_ssize_t n, ne, given_count, title_count, source;
    double *sums[SUMS]; /* over the blocks before each */
    int32_t *path_of, *siblings_of, *up, *heading_before, *heading_behind, *copies, *firsts;
    Group *paths, *siblings;
    Py_ssize_t main_first[SHARES], main_last[SHARES];
    Py_ssize_t biggest, first_h1, h1s, first_title;
    double biggest_prose, page[OWN_PAGE];
    void *memory[24];
    int taken;
} Page;

static void *take(Page *p, size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    p->memory[p->taken++] = memory;
    return memory;
}

static void free_page(Page *p)
{
    while (p->taken)
        free(p->memory[--p->taken]);
}

static const int32_t *block_of(const Page *p, Py_ssize_t i) { return p->blocks + i * B_COLUMNS; }
static const int32_t *element_of(const Page *p, Py_ssize_t e) { return p->elements + e * N_COLUMNS; }

/* Numbers equal keys alike, in the order of their first places. The number of groups, or -1 without memory. */
static Py_ssize_t number_groups(const int64_t *keys, Py_ssize_t count, int32_t *groups)
{
    size_t slots = 16;
    while (slots < (size_t)count * 2)
        slots *= 2;
    int32_t *table = calloc(slots, sizeof *table);
    int64_t *known = malloc((size_t)(count + 1) * sizeof *known);
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; table && known && i < count; i++) {
        size_t slot = (size_t)slot_hash(&group_key, (uint64_t)keys[i]) & (slots - 1);
        while (table[slot] && known[table[slot] - 1] != keys[i])
            slot = (slot + 1) & (slots - 1);
        if (!table[slot]) {
            known[found] = keys[i];
            table[slot] = (int32_t)++found;
        }
        groups[i] = table[slot] - 1;
    }
    const int good = table && known;
    free(table), free(known);
    return good ? found : -1;
}

static const int32_t *said_of(const Page *p, Py_ssize_t i) { return p->said + i * W_COLUMNS; }

static double sum(const Page *p, int which, Py_ssize_t from, Py_ssize_t to)
{
    return p->sums[which][to] - p->sums[which][from];
}

static double share(double part, double whole) { return part / (whole > 1 ? whole : 1); }

static double prose_of(const int32_t *b) { return b[B_SENTENCES] > 0 ? b[B_SIZE] - b[B_LINKED] : 0; }

static int prepare_sums(Page *p)
{
    for (int s = 0; s < SUMS; s++)
        if (!(p->sums[s] = take(p, (size_t)p->n + 1, sizeof(double))))
            return 0;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        const int32_t *b = block_of(p, i);
        const double values[SUMS] = {b[B_SIZE],        b[B_LINKED],   b[B_SENTENCES], prose_of(b),
                                     b[B_HEADING] > 0, b[B_CURRENCY], b[B_IMAGES],   said_of(p, i)[W_SUM],
                                     said_of(p, i)[W_COUNT], said_of(p, i)[W_KNOWN]};
        for (int s = 0; s < SUMS; s++)
            p->sums[s][i + 1] = p->sums[s][i] + values[s];
    }
    return 1;
}

/* Groups of blocks by path, by whole text and by first word; of siblings by parent and looks. */
static int prepare_groups(Page *p)
{
    const Py_ssize_t most = p->n > p->ne ? p->n : p->ne;
    int64_t *keys = take(p, (size_t)most, sizeof *keys);
    int32_t *groups = take(p, (size_t)most, sizeof *groups), *counts = take(p, (size_t)most + 1, sizeof *counts);
    p->path_of = take(p, (size_t)p->n, sizeof(int32_t));
    p->copies = take(p, (size_t)p->n, sizeof(int32_t));
    p->firsts = take(p, (size_t)p->n, sizeof(int32_t));
    p->siblings_of = take(p, (size_t)p->ne, sizeof(int32_t));
    p->paths = take(p, (size_t)p->n + 1, sizeof(Group));
    p->siblings = take(p, (size_t)p->ne + 1, sizeof(Group));
    for (int t = 0; t < p->taken; t++)
        if (!p->memory[t])
            return 0;
    for (Py_ssize_t i = 0; i < p->n; i++)
        keys[i] = block_of(p, i)[B_PATH];
    if (number_groups(keys, p->n, p->path_of) < 0)
        return 0;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        const int32_t *b = block_of(p, i);
        Group *group = &p->paths[p->path_of[i]];
        group->count++;
        group->size += b[B_SIZE];
        group->linked += b[B_LINKED];
        group->sentences += b[B_SENTENCES];
    }
    static const int columns[2] = {B_WHOLE, B_FIRST};
    for (int which = 0; which < 2; which++) {
        int32_t *out = which ? p->firsts : p->copies;
        for (Py_ssize_t i = 0; i < p->n; i++)
            keys[i] = block_of(p, i)[columns[which]];
        if (number_groups(keys, p->n, groups) < 0)
            return 0;
        memset(counts, 0, (size_t)most * sizeof *counts);
        for (Py_ssize_t i = 0; i < p->n; i++)
            counts[groups[i]]++;
        for (Py_ssize_t i = 0; i < p->n; i++)
            out[i] = counts[groups[i]];
    }
    for (Py_ssize_t e = 0; e < p->ne; e++)
        keys[e] = (int64_t)((uint64_t)(uint32_t)element_of(p, e)[N_PARENT] << 32 | (uint32_t)element_of(p, e)[N_LOOKS]);
    if (number_groups(keys, p->ne, p->siblings_of) < 0)
        return 0;
    for (Py_ssize_t e = 0; e < p->ne; e++) {
        const int32_t *element = element_of(p, e);
        Group *group = &p->siblings[p->siblings_of[e]];
        const double size = sum(p, S_SIZE, element[N_FIRST], element[N_LAST]);
        group->count++;
        group->size += size;
        group->squares += size * size;
        group->linked += sum(p, S_LINKED, element[N_FIRST], element[N_LAST]);
        group->prose += sum(p, S_PROSE, element[N_FIRST], element[N_LAST]);
        group->blocks += element[N_LAST] - element[N_FIRST];
    }
    return 1;
}

/* Elements: the next one around with more blocks, and the smallest with most of the page's prose. */
static int prepare_elements(Page *p)
{
    static const double parts[SHARES] = {0.4, 0.6, 0.85};
    if (!(p->up = take(p, (size_t)p->ne, sizeof(int32_t))))
        return 0;
    Py_ssize_t best[SHARES];
    for (int s = 0; s < SHARES; s++)
        p->main_first[s] = 0, p->main_last[s] = best[s] = p->n;
    const double all = p->sums[S_PROSE][p->n];
    for (Py_ssize_t e = 0; e < p->ne; e++) {
        const int32_t *element = element_of(p, e);
        const int32_t parent = element[N_PARENT];
        const Py_ssize_t span = element[N_LAST] - element[N_FIRST];
        p->up[e] = parent;
        if (parent >= 0 && element_of(p, parent)[N_LAST] - element_of(p, parent)[N_FIRST] == span)
            p->up[e] = p->up[parent];
        for (int s = 0; all > 0 && s < SHARES; s++)
            if (span < best[s] && sum(p, S_PROSE, element[N_FIRST], element[N_LAST]) >= parts[s] * all) {
                best[s] = span;
                p->main_first[s] = element[N_FIRST];
                p->main_last[s] = element[N_LAST];
            }
    }
    return 1;
}

static int prepare_headings(Page *p)
{
    p->heading_before = take(p, (size_t)p->n, sizeof(int32_t));
    p->heading_behind = take(p, (size_t)p->n, sizeof(int32_t));
    if (!p->heading_before || !p->heading_behind)
        return 0;
    int32_t last = -1, next = (int32_t)p->n;
    p->first_h1 = p->first_title = -1;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        const int32_t *b = block_of(p, i);
        last = b[B_HEADING] ? (int32_t)i : last;
        p->heading_before[i] = last;
        if (b[B_HEADING] == 1) {
            p->first_h1 = p->first_h1 < 0 ? i : p->first_h1;
            p->h1s++;
        }
        for (Py_ssize_t t = 0; p->first_title < 0 && t < p->title_count; t++)
            if (p->titles[t] == b[B_WHOLE])
                p->first_title = i;
        if (prose_of(b) > p->biggest_prose) {
            p->biggest_prose = prose_of(b);
            p->biggest = i;
        }
    }
    for (Py_ssize_t i = p->n; i-- > 0;) {
        next = block_of(p, i)[B_HEADING] ? (int32_t)i : next;
        p->heading_behind[i] = next;
    }
    return 1;
}

static void prepare_page(Page *p)
{
    double *v = p->page, long_count = 0, long_size = 0, most_paths = 0, most_siblings = 0;
    const double n = p->n ? (double)p->n : 1;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        const int32_t *b = block_of(p, i);
        const uint8_t *near = p->near + i * GROUPS;
        if (b[B_SIZE] >= 80) {
            long_count++;
            long_size += b[B_SIZE];
        }
        most_paths = fmax(most_paths, p->paths[p->path_of[i]].count);
        v[11] += b[B_INPUTS];
        v[12] += (b[B_FLAGS] & F_TABLE) != 0;
        v[13] += b[B_LIST] > 0;
        v[16] += prose_of(b) > 0;
        v[18] += b[B_BREAKS];
        v[19] += near[G_POST] < 255;
        v[20] += near[G_PRODUCT] < 255;
        v[21] += near[G_COMMENT] < 255;
        v[22] += (b[B_FLAGS] & F_CODE) != 0;
        v[23] += (b[B_FLAGS] & F_PRE) != 0;
        v[24] += b[B_UPPER];
        v[25] += b[B_WORDS];
    }
    for (Py_ssize_t e = 0; e < p->ne; e++)
        most_siblings = fmax(most_siblings, p->siblings[e].count);
    /* How the page is written: with capitals, in how long words, in words that the lexicon knows. */
    v[24] = share(v[24], p->sums[S_SIZE][p->n]);
    v[25] = share(p->sums[S_SIZE][p->n], v[25]);
    v[26] = share(p->sums[S_KNOWN][p->n], p->sums[S_SAYING][p->n]);
    v[0] = (double)p->n;
    v[1] = p->sums[S_SIZE][p->n];
    v[2] = share(p->sums[S_LINKED][p->n], v[1]);
    v[3] = p->sums[S_SENTENCES][p->n];
    v[4] = p->sums[S_PROSE][p->n];
    v[5] = share(v[4], v[1]);
    v[6] = long_count;
    v[7] = share(long_size, long_count);
    v[8] = p->sums[S_HEADINGS][p->n];
    v[9] = p->sums[S_MONEY][p->n];
    v[10] = p->sums[S_IMAGES][p->n];
    v[14] = most_paths;
    v[15] = most_siblings;
    v[17] = p->biggest_prose;
    static const int shares[] = {12, 13, 19, 20, 21, 22, 23};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++)
        v[shares[s]] /= n;
}

static int prepare_features(Page *p)
{
    if (!prepare_sums(p) || !prepare_groups(p) || !prepare_elements(p) || !prepare_headings(p))
        return 0;
    prepare_page(p);
    return 1;
}

#endif
