/* Open elements, the block that is being read, and how it ends. */

#ifndef REFINERY_HTMLBLOCKS_STACK_H
#define REFINERY_HTMLBLOCKS_STACK_H

#include "htmlblocks_output.h"

enum { MOST_OPEN = 512, MOST_EXTRAS = 64, MOST_BYTES = 1 << 30, MOST_BLOCKS = 1 << 27, NAME_COUNTS = 4096, NEAR = 48, MOST_INDENT = 200, MOST_SHORTCODES = 16 };

/* What an open element does until it is closed. */
enum { IN_LINK, IN_BOLD, IN_PRE, IN_MUTED, IN_ASIDE, IN_NOSCRIPT, IN_TEMPLATE, IN_HIDDEN, IN_LIST, IN_QUOTE, IN_TERM,
       IN_HEAD_CELL, IN_CODE, EFFECTS };

/* white-space: what becomes of runs of spaces and line ends. */
enum { SPACES_UNSET, SPACES_COLLAPSE, SPACES_LINES /* line ends stay */, SPACES_STAY };

typedef struct {
    uint32_t hash, looks; /* of the name; of name and class */
    int kind, flags;
    int element;      /* its number, -1 while no text stands in it */
    int number;       /* ol: of its last item; li: its own until it is used; tr: of the row; td, th: in its row */
    int cells;        /* tr: begun so far */
    int spaces;       /* what becomes of them: SPACES_... */
    uint32_t effects; /* bits of the effects */
    uint64_t groups, above; /* its own, and those of all elements around it */
} Open;

typedef struct {
    int kind;
    const uint8_t *text;
    size_t size;
} Extra;

typedef struct {
    const uint8_t *start, *at, *end, *last_source, *iframe_end /* of the next </iframe> */, *spoken /* behind the last text for screen readers */,
        *tag; /* where the start tag begins that is being read */
    Open stack[MOST_OPEN];
    int depth, overflow, failed, extras, rows;
    int effects[EFFECTS], kinds[E_KINDS];
    uint16_t names[NAME_COUNTS]; /* open elements by hash of the name */
    Extra extra[MOST_EXTRAS];
    uint64_t body_groups;
    Buffer out, blocks, distances, elements;
    int block_count, element_count, limit;
    /* The block that is being read. */
    int32_t block[B_COLUMNS];
    uint8_t near[GROUPS];
    int open, space, newline, tabs, joint; /* space & 2: with a line end; joint: an inline element was closed and another opened here */
    /* spaces: as of Open; pad: spaces that indent the line; gap: the last one was collapsible; broken: a block ended by
     * line breaks; clause: letters in a row, of scripts without spaces; piece: where the text of the last inline element begins. */
    int spaces, pad, gap, broken, clause;
    size_t piece;
    int images, inputs, links, rule, indent;
    char indentation[MOST_INDENT];
    uint32_t word, whole, shortcodes[MOST_SHORTCODES]; /* names of the last ones that were opened */
    unsigned shortcode_count;
    int word_size, run, run_upper, run_digits;
    int last_type; /* 0: letter or digit, 1: stop, 2: colon, 3: other, 4: a stop that has been counted */
} State;

static void begin(State *s) { s->word = 2166136261u; }

/* The numbers of the elements around a block, given where they have none. 0 without memory. */
static int number_elements(State *s)
{
    int level = s->depth, parent = -1;
    while (level > 0 && !(s->stack[level - 1].flags & BLOCK))
        level--;
    const int top = level;
    while (level > 0 && s->stack[level - 1].element < 0)
        level--;
    if (level > 0)
        parent = s->stack[level - 1].element;
    for (; level < top; level++) {
        Open *open = &s->stack[level];
        if (!reserve(&s->elements, N_COLUMNS * sizeof(int32_t)))
            return 0;
        int32_t *element = (int32_t *)(void *)(s->elements.data + s->elements.size);
        element[N_PARENT] = parent;
        element[N_FIRST] = s->block_count;
        element[N_LAST] = s->block_count + 1;
        element[N_LOOKS] = (int32_t)open->looks;
        element[N_KIND] = open->kind;
        element[N_DEPTH] = level;
        s->elements.size += N_COLUMNS * sizeof(int32_t);
        parent = open->element = s->element_count++;
    }
    s->block[B_ELEMENT] = parent;
    return 1;
}

/* The letters since the last other character are a word. */
static inline void end_letters(State *s)
{
    if (!s->word_size)
        return;
    const int32_t hash = (int32_t)s->word;
    if (s->word_size > 1 && is_site_word(s->word))
        s->block[B_SITE_WORDS]++;
    if (!s->block[B_FIRST])
        s->block[B_FIRST] = hash;
    s->block[B_LAST] = hash;
    s->word = 2166136261u;
    s->word_size = 0;
}

/* The characters since the last space are a word. */
static inline void end_run(State *s)
{
    end_letters(s);
    s->clause = 0;
    if (!s->run)
        return;
    s->block[B_WORDS]++;
    s->block[B_CAPITALS] += s->run_upper;
    if (s->run > s->block[B_LONGEST])
        s->block[B_LONGEST] = s->run;
    if (s->last_type == 1)
        s->block[B_SENTENCES]++;
    s->run = s->run_upper = 0;
}

/* The first character of a block comes. */
static void open_block(State *s)
{
    int32_t *b = s->block;
    uint64_t seen = 0;
    uint32_t path = 0;
    memset(b, 0, sizeof s->block);
    memset(s->near, 255, sizeof s->near);
    const int bottom = s->depth > NEAR ? s->depth - NEAR : 0;
    int blocks = 0;
    for (int level = s->depth - 1; level >= bottom; level--) {
        const Open *open = &s->stack[level];
        for (uint64_t fresh = open->groups & ~seen; fresh; fresh &= fresh - 1)
            s->near[__builtin_ctzll(fresh)] = (uint8_t)(s->depth - 1 - level);
        seen |= open->groups;
        blocks += (open->flags & BLOCK) != 0;
        if (blocks <= 4)
            path = path * 31 + open->looks;
        if (!b[B_HEADING] && open->kind >= E_H1 && open->kind <= E_H6)
            b[B_HEADING] = open->kind - E_H1 + 1;
        if (!b[B_ROW] && !b[B_CELL] && open->flags & CELL)
            b[B_CELL] = open->number;
        if (!b[B_ROW] && open->kind == E_TR)
            b[B_ROW] = open->number;
    }
    if (bottom > 0)
        for (uint64_t far = (s->stack[bottom].above) & ~seen; far; far &= far - 1)
            s->near[__builtin_ctzll(far)] = NEAR;
    b[B_START] = (int32_t)s->out.size;
    b[B_PATH] = (int32_t)path;
    b[B_DEPTH] = s->depth + s->overflow;
    b[B_SOURCE] = (int32_t)(s->at - s->start);
    b[B_MARKUP] = (int32_t)(s->at - s->last_source);
    b[B_IMAGES] = s->images;
    b[B_INPUTS] = s->inputs;
    b[B_LINKS] = s->links + (s->effects[IN_LINK] > 0 && !s->links);
    b[B_LIST] = s->effects[IN_LIST];
    b[B_FLAGS] = (s->effects[IN_PRE] > 0) * F_PRE | (s->kinds[E_TABLE] > 0) * F_TABLE
                 | (s->effects[IN_NOSCRIPT] > 0) * F_NOSCRIPT | (s->effects[IN_TEMPLATE] > 0) * F_TEMPLATE
                 | (s->effects[IN_HIDDEN] > 0) * F_HIDDEN | (s->effects[IN_QUOTE] > 0) * F_QUOTE
                 | (s->effects[IN_TERM] > 0) * F_TERM | (s->effects[IN_HEAD_CELL] > 0) * F_HEAD_CELL
                 | (s->effects[IN_CODE] > 0) * F_CODE | s->rule * F_RULE;
    for (int level = s->depth - 1; level >= 0 && s->effects[IN_LIST]; level--) {
        Open *open = &s->stack[level];
        if (open->kind == E_LI) {
            b[B_ITEM] = open->number;
            open->number = 0;
            break;
        }
        if (open->kind == E_UL || open->kind == E_OL)
            break;
    }
    s->open = 1;
    s->space = s->newline = s->tabs = s->joint = 0;
    s->images = s->inputs = s->links = s->rule = 0;
    s->whole = 2166136261u;
    s->run = s->run_upper = s->last_type = s->clause = s->broken = 0;
    if (s->indent > 0 && reserve(&s->out, MOST_INDENT)) {
        memcpy(s->out.data + s->out.size, s->indentation, (size_t)s->indent);
        s->out.size += (size_t)s->indent;
    }
    s->indent = 0;
}

/* Ends the block that is being read, if one is. */
static void flush(State *s)
{
    s->joint = s->pad = s->broken = 0;
    s->indent = 0;
    if (!s->open) {
        s->links = 0;
        return;
    }
    int32_t *b = s->block;
    end_run(s);
    s->open = 0;
    while (s->out.size > (size_t)b[B_START]
           && (s->out.data[s->out.size - 1] == ' ' || s->out.data[s->out.size - 1] == '\n'
               || s->out.data[s->out.size - 1] == '\t'))
        s->out.size--;
    b[B_END] = (int32_t)s->out.size;
    b[B_WHOLE] = (int32_t)s->whole;
    b[B_FLAGS] |= (s->last_type == 1 || s->last_type == 4 ? F_END : 0) | (s->last_type == 2 ? F_COLON : 0);
    if (b[B_END] > b[B_START] && s->out.data[b[B_END] - 1] == '?')
        b[B_FLAGS] |= F_QUESTION;
    s->last_source = s->at;
    if (b[B_SIZE] == 0 || !number_elements(s) || !reserve(&s->blocks, sizeof s->block)
        || !reserve(&s->distances, sizeof s->near)) {
        s->failed |= b[B_SIZE] != 0;
        s->out.size = (size_t)b[B_START];
        return;
    }
    memcpy(s->blocks.data + s->blocks.size, b, sizeof s->block);
    memcpy(s->distances.data + s->distances.size, s->near, sizeof s->near);
    s->blocks.size += sizeof s->block;
    s->distances.size += sizeof s->near;
    s->block_count++;
}

static void push(State *s, const Open *open)
{
    if (s->depth == MOST_OPEN) {
        s->overflow++;
        return;
    }
    Open *top = &s->stack[s->depth];
    *top = *open;
    top->element = -1;
    top->spaces = s->spaces = open->spaces ? open->spaces : s->spaces;
    top->above = s->depth ? s->stack[s->depth - 1].above | s->stack[s->depth - 1].groups : 0;
    s->names[top->hash % NAME_COUNTS]++;
    s->kinds[top->kind]++;
    for (int e = 0; e < EFFECTS; e++)
        s->effects[e] += top->effects >> e & 1;
    s->depth++;
}

/* What an open element does ends, though it may stay on the stack. */
static void end_effects(State *s, Open *open)
{
    for (int e = 0; e < EFFECTS; e++)
        s->effects[e] -= open->effects >> e & 1;
    s->names[open->hash % NAME_COUNTS]--;
    s->kinds[open->kind]--;
    open->effects = open->hash = 0;
}

/* Whether text is left out where the page is being read. */
static inline int is_quiet(const State *s) { return s->effects[IN_MUTED] || s->effects[IN_ASIDE]; }

static void pop(State *s)
{
    Open *top = &s->stack[s->depth - 1];
    if (top->flags & BLOCK && !is_quiet(s))
        flush(s);
    if (top->hash)
        end_effects(s, top);
    if (top->element >= 0) {
        int32_t *element = (int32_t *)(void *)s->elements.data + (size_t)top->element * N_COLUMNS;
        element[N_LAST] = s->block_count;
    }
    s->depth--;
    s->spaces = s->depth ? s->stack[s->depth - 1].spaces : SPACES_UNSET;
}

static void pop_to(State *s, int level)
{
    while (s->depth > level)
        pop(s);
}

#endif
