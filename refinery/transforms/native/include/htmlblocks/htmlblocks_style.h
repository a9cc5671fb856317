/* The style attribute, read as CSS reads it: CSS Syntax 3, section 5.4.5, a list of declarations.
 *
 * Names and keywords have no case; comments and white space are allowed around both; a custom property (--x-display) is
 * another name; of several declarations the last valid one counts, unless an earlier one is important. What stands in
 * quotes and brackets is no border. Escapes in names are not decoded. Cost: one pass. */

#ifndef REFINERY_HTMLBLOCKS_STYLE_H
#define REFINERY_HTMLBLOCKS_STYLE_H

#include "htmlblocks_attributes.h"

/* display: ALONGSIDE is a box of its own in the line, as inline-block. */
enum { D_UNSET, D_NONE, D_INLINE, D_ALONGSIDE, D_BLOCK };
enum { V_UNSET, V_VISIBLE, V_INVISIBLE };

typedef struct {
    uint8_t display, visibility, spaces;
} Style;

static const struct {
    char property; /* display, visibility, white-space */
    const char *word;
    uint8_t value;
} STYLE_WORDS[] = {
    {'d', "none", D_NONE}, {'d', "inline", D_INLINE}, {'d', "contents", D_INLINE}, {'d', "initial", D_INLINE},
    {'d', "unset", D_INLINE}, {'d', "ruby", D_INLINE}, {'d', "inline-block", D_ALONGSIDE},
    {'d', "inline-flex", D_ALONGSIDE}, {'d', "inline-grid", D_ALONGSIDE}, {'d', "inline-table", D_ALONGSIDE},
    {'d', "block", D_BLOCK}, {'d', "flex", D_BLOCK}, {'d', "grid", D_BLOCK}, {'d', "flow-root", D_BLOCK},
    {'d', "list-item", D_BLOCK}, {'d', "table", D_BLOCK}, {'d', "inherit", D_UNSET}, {'d', "revert", D_UNSET},
    {'d', "table-cell", D_UNSET}, {'d', "table-row", D_BLOCK}, {'d', "-webkit-box", D_BLOCK},
    {'d', "-webkit-flex", D_BLOCK}, {'v', "hidden", V_INVISIBLE}, {'v', "collapse", V_INVISIBLE},
    {'v', "visible", V_VISIBLE}, {'v', "initial", V_VISIBLE}, {'v', "inherit", V_UNSET}, {'v', "unset", V_UNSET},
    {'w', "normal", SPACES_COLLAPSE}, {'w', "nowrap", SPACES_COLLAPSE}, {'w', "initial", SPACES_COLLAPSE},
    {'w', "pre-line", SPACES_LINES}, {'w', "pre", SPACES_STAY}, {'w', "pre-wrap", SPACES_STAY},
    {'w', "break-spaces", SPACES_STAY}, {'w', "inherit", SPACES_UNSET}, {'w', "unset", SPACES_UNSET},
};

/* Behind white space and comments. */
static const uint8_t *style_blank(const uint8_t *at, const uint8_t *end)
{
    for (;;) {
        while (at < end && is_space(*at))
            at++;
        if (end - at < 2 || at[0] != '/' || at[1] != '*')
            return at;
        const uint8_t *stop = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
        at = stop ? stop + 2 : end;
    }
}

/* The semicolon that ends the declaration at `at`, or the end. */
static const uint8_t *style_border(const uint8_t *at, const uint8_t *end)
{
    int depth = 0;
    while (at < end && (depth > 0 || *at != ';')) {
        if (*at == '\\' && end - at > 1) {
            at++;
        } else if (*at == '"' || *at == '\'') {
            const uint8_t quote = *at;
            for (at++; at < end && *at != quote && *at != '\n'; at++)
                at += *at == '\\' && end - at > 1;
            if (at == end)
                return end;
        } else if (*at == '/' && end - at > 1 && at[1] == '*') {
            at = style_blank(at, end);
            continue;
        } else if (*at == '(' || *at == '[' || *at == '{') {
            depth++;
        } else if (depth && (*at == ')' || *at == ']' || *at == '}')) {
            depth--;
        }
        at++;
    }
    return at;
}

/* The word at `at` and where it ends. A string, a number or a function has none. */
static Value style_word(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *from = *at = style_blank(*at, end);
    while (*at < end && (letter_of(**at) || **at == '-' || **at == '_' || (**at >= '0' && **at <= '9') || **at >= 0x80))
        ++*at;
    return (Value){from, (size_t)(*at - from)};
}

static Style style_of(Value attribute)
{
    Style style = {0};
    int important[3] = {0};
    const uint8_t *at = attribute.at, *end = at ? at + attribute.size : NULL;
    while (at < end) {
        const uint8_t *border = style_border(at, end);
        const Value name = style_word(&at, border);
        const int property = is(name, "display") ? 0 : is(name, "visibility") ? 1 : is(name, "white-space") ? 2 : -1;
        at = property < 0 ? border : style_blank(at, border);
        if (at < border && *at == ':') {
            at++;
            const Value word = style_word(&at, border);
            at = style_blank(at, border);
            int weighs = 0;
            if (at < border && *at == '!') {
                at++;
                weighs = is(style_word(&at, border), "important");
                at = weighs ? style_blank(at, border) : at - 1;
            }
            uint8_t *value = property == 0 ? &style.display : property == 1 ? &style.visibility : &style.spaces;
            /* Two words, as in "block flow", are rare, and left alone. */
            for (size_t i = 0; at == border && weighs >= important[property] && i < sizeof STYLE_WORDS / sizeof *STYLE_WORDS; i++)
                if (STYLE_WORDS[i].property == "dvw"[property] && is(word, STYLE_WORDS[i].word)) {
                    *value = STYLE_WORDS[i].value;
                    important[property] = weighs;
                    break;
                }
        }
        at = border + 1;
    }
    return style;
}

#endif
