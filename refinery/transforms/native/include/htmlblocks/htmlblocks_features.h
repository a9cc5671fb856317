/* What the model sees of a block: itself, its neighbours, the elements around it, their repetitions, the page.
 *
 * The features are those of the literature on boilerplate (Kohlschuetter, Fankhauser and Nejdl 2010: length, link density,
 * neighbours; Vogels, Ganea and Eickhoff 2018, "Web2Text": page and ancestors), with distances to named elements and
 * classes, statistics of repeated siblings and of places with one path, and what a lexicon says of the words. All of
 * them are made from integers by single float operations, in one order. Cost: linear in blocks. */

#ifndef REFINERY_HTMLBLOCKS_FEATURES_H
#define REFINERY_HTMLBLOCKS_FEATURES_H

#include "htmlblocks_page.h"

static float *own_features(const Page *p, Py_ssize_t i, float *f)
{
    static const int columns[] = {B_SIZE,  B_WORDS,   B_LINKS,  B_SENTENCES, B_COMMAS, B_BREAKS, B_IMAGES, B_INPUTS,
                                  B_LONGEST, B_SITE_WORDS, B_CURRENCY, B_MARKUP, B_HEADING, B_LIST, B_ITEM, B_DEPTH,
                                  B_DIGITS};
    static const int by_size[] = {B_LINKED, B_DIGITS, B_UPPER, B_SYMBOLS, B_BOLD, B_MARKUP};
    static const int by_words[] = {B_COMMAS, B_CAPITALS, B_SITE_WORDS, B_SIZE, B_SENTENCES};
    const int32_t *b = block_of(p, i);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        *f++ = (float)b[columns[c]];
    for (size_t c = 0; c < sizeof by_size / sizeof *by_size; c++)
        *f++ = (float)share(b[by_size[c]], b[B_SIZE]);
    for (size_t c = 0; c < sizeof by_words / sizeof *by_words; c++)
        *f++ = (float)share(b[by_words[c]], b[B_WORDS]);
    for (int bit = 0; bit < 16; bit++)
        *f++ = (float)(b[B_FLAGS] >> bit & 1);
    *f++ = (float)i;
    *f++ = (float)(p->n - i);
    *f++ = (float)((double)i / (double)p->n);
    *f++ = (float)share(b[B_SOURCE], (double)p->source);
    *f++ = (float)share(p->sums[S_SIZE][i], p->sums[S_SIZE][p->n]);
    *f++ = (float)share(p->sums[S_PROSE][i], p->sums[S_PROSE][p->n]);
    for (int g = 0; g < GROUPS; g++)
        *f++ = (float)p->near[i * GROUPS + g];
    return f;
}

static float *neighbour_features(const Page *p, Py_ssize_t i, float *f)
{
    static const int windows[] = {3, 8, 20};
    const int32_t *b = block_of(p, i);
    for (int step = -NEIGHBOURS; step <= NEIGHBOURS; step++) {
        if (step == 0)
            continue;
        const int there = i + step >= 0 && i + step < p->n;
        const int32_t *other = there ? block_of(p, i + step) : b;
        *f++ = there ? (float)other[B_SIZE] : -1;
        *f++ = there ? (float)share(other[B_LINKED], other[B_SIZE]) : -1;
        *f++ = there ? (float)other[B_SENTENCES] : -1;
        if (step < -2 || step > 2)
            continue;
        *f++ = there ? (float)other[B_HEADING] : -1;
        *f++ = there ? (float)other[B_SITE_WORDS] : -1;
        *f++ = there ? (float)(other[B_PATH] == b[B_PATH]) : -1;
        *f++ = there ? (float)(other[B_DEPTH] - b[B_DEPTH]) : -99;
    }
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        const Py_ssize_t from = i > windows[w] ? i - windows[w] : 0;
        const Py_ssize_t to = i + windows[w] + 1 < p->n ? i + windows[w] + 1 : p->n;
        const double size = sum(p, S_SIZE, from, to);
        *f++ = (float)size;
        *f++ = (float)share(sum(p, S_LINKED, from, to), size);
        *f++ = (float)sum(p, S_PROSE, from, to);
        *f++ = (float)sum(p, S_MONEY, from, to);
        *f++ = (float)sum(p, S_HEADINGS, from, to);
    }
    return f;
}

static float *element_features(const Page *p, Py_ssize_t i, float *f)
{
    const int32_t *b = block_of(p, i);
    const Group *path = &p->paths[p->path_of[i]];
    const double all = p->sums[S_SIZE][p->n];
    *f++ = (float)path->count;
    *f++ = (float)(path->size / path->count);
    *f++ = (float)share(path->linked, path->size);
    *f++ = (float)share(path->size, all);
    *f++ = (float)(path->sentences / path->count);
    *f++ = (float)p->copies[i];
    *f++ = (float)p->firsts[i];
    int32_t e = b[B_ELEMENT], repeated = -1, level_of = -1;
    for (int level = 0; level < LEVELS; level++) {
        const int32_t *element = e >= 0 ? element_of(p, e) : NULL;
        const Py_ssize_t first = e >= 0 ? element[N_FIRST] : 0, last = e >= 0 ? element[N_LAST] : p->n;
        const double size = sum(p, S_SIZE, first, last);
        *f++ = (float)(last - first);
        *f++ = (float)size;
        *f++ = e >= 0 ? (float)share(sum(p, S_LINKED, first, last), size) : -1;
        *f++ = e >= 0 ? (float)share(sum(p, S_PROSE, first, last), size) : -1;
        if (level < FULL_LEVELS) {
            *f++ = e >= 0 ? (float)sum(p, S_SENTENCES, first, last) : -1;
            *f++ = e >= 0 ? (float)p->siblings[p->siblings_of[e]].count : -1;
            *f++ = e >= 0 ? (float)sum(p, S_MONEY, first, last) : -1;
            *f++ = e >= 0 ? (float)sum(p, S_IMAGES, first, last) : -1;
            *f++ = e >= 0 ? (float)share((double)(i - first), (double)(last - first)) : -1;
            *f++ = e >= 0 ? (float)element[N_KIND] : -1;
        }
        if (e >= 0 && repeated < 0 && p->siblings[p->siblings_of[e]].count >= 3) {
            repeated = p->siblings_of[e];
            level_of = level;
        }
        e = e >= 0 ? p->up[e] : -1;
    }
    *f++ = (float)level_of;
    const Group *group = repeated >= 0 ? &p->siblings[repeated] : NULL;
    const double mean = group ? group->size / group->count : 0;
    *f++ = group ? (float)group->count : -1;
    *f++ = group ? (float)mean : -1;
    *f++ = group ? (float)share(group->linked, group->size) : -1;
    *f++ = group ? (float)share(group->prose, group->size) : -1;
    *f++ = group ? (float)(group->blocks / group->count) : -1;
    *f++ = group ? (float)share(sqrt(fmax(group->squares / group->count - mean * mean, 0)), mean) : -1;
    *f++ = group ? (float)share(group->size, all) : -1;
    return f;
}

static float *place_features(const Page *p, Py_ssize_t i, float *f)
{
    const int32_t *b = block_of(p, i);
    for (int s = 0; s < SHARES; s++) {
        const Py_ssize_t first = p->main_first[s], last = p->main_last[s];
        *f++ = (float)(i < first ? i - first : i >= last ? i - last + 1 : 0);
        *f++ = (float)((double)(last - first) / (double)p->n);
    }
    const int32_t *big = block_of(p, p->biggest);
    *f++ = (float)(i - p->biggest);
    *f++ = (float)(b[B_DEPTH] - big[B_DEPTH]);
    *f++ = (float)(b[B_PATH] == big[B_PATH]);
    *f++ = (float)share(b[B_SIZE], p->biggest_prose);
    *f++ = (float)(i - p->heading_before[i]);
    *f++ = (float)(p->heading_behind[i] - i);
    *f++ = p->first_h1 >= 0 ? (float)(i - p->first_h1) : -9999;
    *f++ = (float)p->h1s;
    int titled = 0;
    for (Py_ssize_t t = 0; t < p->title_count; t++)
        titled |= p->titles[t] == b[B_WHOLE];
    *f++ = (float)titled;
    *f++ = p->first_title >= 0 ? (float)(i - p->first_title) : -9999;
    for (int v = 0; v < OWN_PAGE; v++)
        *f++ = (float)p->page[v];
    for (Py_ssize_t v = 0; v < p->given_count; v++)
        *f++ = p->given[v];
    return f;
}

static double mean_said(const Page *p, Py_ssize_t from, Py_ssize_t to)
{
    return share(sum(p, S_SAID, from, to), sum(p, S_SAYING, from, to));
}

/* What the lexicon says of the block, of its neighbours, of the elements around it and of the page. */
static float *word_features(const Page *p, Py_ssize_t i, float *f)
{
    static const int windows[] = {3, 8, 20};
    const int32_t *said = said_of(p, i);
    *f++ = (float)said[W_SUM];
    *f++ = (float)share(said[W_SUM], said[W_COUNT]);
    *f++ = (float)said[W_LOWEST];
    *f++ = i > 0 ? (float)mean_said(p, i - 1, i) : 0;
    *f++ = i + 1 < p->n ? (float)mean_said(p, i + 1, i + 2) : 0;
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
        *f++ = (float)mean_said(p, i > windows[w] ? i - windows[w] : 0, i + windows[w] + 1 < p->n ? i + windows[w] + 1 : p->n);
    int32_t e = block_of(p, i)[B_ELEMENT];
    for (int level = 0; level < FULL_LEVELS; level++) {
        const int32_t *element = e >= 0 ? element_of(p, e) : NULL;
        *f++ = (float)(element ? mean_said(p, element[N_FIRST], element[N_LAST]) : mean_said(p, 0, p->n));
        e = e >= 0 ? p->up[e] : -1;
    }
    *f++ = (float)mean_said(p, 0, p->n);
    return f;
}

/* The features of block i; returns how many there are. `f` has room for MOST_WIDTH. */
static Py_ssize_t features_of(const Page *p, Py_ssize_t i, float *f)
{
    float *end = own_features(p, i, f);
    end = neighbour_features(p, i, end);
    end = element_features(p, i, end);
    end = word_features(p, i, end);
    return place_features(p, i, end) - f;
}

#endif
