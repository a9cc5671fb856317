/* What the block extractor returns: text, blocks, elements. */

#ifndef REFINERY_HTMLBLOCKS_OUTPUT_H
#define REFINERY_HTMLBLOCKS_OUTPUT_H

#include "htmlblocks_tables.h"

/* Columns of a block, int32. transforms/extract/blocks/page.py names them in the same order. */
enum {
    B_START, B_END,       /* bytes of the text */
    B_ELEMENT,            /* number of the innermost block element */
    B_SIZE,               /* characters without spaces, those of Chinese and Japanese three times, Korean twice */
    B_WORDS,              /* runs of characters, and a fifth of the size of scripts that have no spaces */
    B_LINKED, B_LINKS,    /* size inside links; links that start in it */
    B_SENTENCES, B_COMMAS, B_DIGITS, B_UPPER, B_SYMBOLS, B_BOLD, B_BREAKS, B_IMAGES, B_INPUTS, B_CAPITALS, B_LONGEST,
    B_SITE_WORDS, B_CURRENCY, B_MARKUP, /* bytes of the page since the last block */
    B_SOURCE,             /* where in the page it starts */
    B_HEADING,            /* 1 to 6, 0: none */
    B_LIST, B_ITEM,       /* lists around it; -1 starts an item of a bullet list, 1 and more of a numbered one */
    B_FLAGS, B_DEPTH, B_PATH, /* bits below; open elements; a hash of the elements around it with their classes */
    B_ROW, B_FIRST, B_LAST, /* number of its table row, 0: none; hashes of its first and last word */
    B_WHOLE,              /* a hash of all of its letters */
    B_CELL,               /* number of its cell in the row, 0: none; of the first where it has several (F_CELLS) */
    B_COLUMNS,
};
enum {
    F_PRE = 1, F_TABLE = 2, F_END = 4, F_UPPER_START = 8, F_NOSCRIPT = 16, F_TEMPLATE = 32, F_HIDDEN = 64, F_QUOTE = 128,
    F_TERM = 256, F_HEAD_CELL = 512, F_CELLS = 1024, F_RULE = 2048, F_CODE = 4096, F_DIGIT_START = 8192, F_COLON = 16384,
    F_QUESTION = 32768,
};

/* Columns of an element, int32: only elements with text are numbered, in the order of their start tags' first text. */
enum { N_PARENT, N_FIRST, N_LAST, N_LOOKS, N_KIND, N_DEPTH, N_COLUMNS };

typedef struct {
    uint8_t *data;
    size_t size, room;
} Buffer;

/* Room for `more` bytes; 0 without memory. */
static inline int reserve(Buffer *b, size_t more)
{
    if (b->size + more <= b->room)
        return 1;
    size_t room = b->room * 2 + more + 4096;
    uint8_t *data = PyMem_RawRealloc(b->data, room);
    if (!data)
        return 0;
    b->data = data;
    b->room = room;
    return 1;
}

#endif
