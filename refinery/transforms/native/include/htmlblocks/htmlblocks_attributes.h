/* A tag's attributes, and what is asked of their values. */

#ifndef REFINERY_HTMLBLOCKS_ATTRIBUTES_H
#define REFINERY_HTMLBLOCKS_ATTRIBUTES_H

#include "htmlblocks_stack.h"

enum { MOST_CLASS = 4000 };

typedef struct {
    const uint8_t *at;
    size_t size;
} Value;

enum { A_CLASS, A_ID, A_ROLE, A_ITEMPROP, A_STYLE, A_TYPE, A_ALT, A_ALTTEXT, A_PROPERTY, A_NAME, A_CONTENT, A_HREF,
       A_HIDDEN, A_ARIA_HIDDEN, A_DISPLAY, A_START, ATTRIBUTES };

static const char *const ATTRIBUTE_NAMES[ATTRIBUTES] = {
    "class", "id", "role", "itemprop", "style", "type", "alt", "alttext", "property", "name", "content", "href", "hidden",
    "aria-hidden", "display", "start",
};

static inline int is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

static inline int has(Value value, const char *word)
{
    return value.at && value.size <= MOST_CLASS && memmem(value.at, value.size, word, strlen(word)) != NULL;
}

static inline int is(Value value, const char *word)
{
    return value.at && value.size == strlen(word) && !strncasecmp((const char *)value.at, word, value.size);
}

/* Reads attributes from `at`; returns the place behind the tag. The first of two with one name counts. */
static const uint8_t *read_attributes(const uint8_t *at, const uint8_t *end, Value *values, int *self_closing)
{
    memset(values, 0, ATTRIBUTES * sizeof *values);
    *self_closing = 0;
    while (at < end) {
        if (*at == '>')
            return at + 1;
        if (is_space(*at) || *at == '/') {
            *self_closing = *at == '/' && at + 1 < end && at[1] == '>';
            at++;
            continue;
        }
        const uint8_t *name = at++;
        while (at < end && !is_space(*at) && *at != '/' && *at != '>' && *at != '=')
            at++;
        const size_t size = (size_t)(at - name);
        const uint8_t *after = at;
        while (after < end && is_space(*after))
            after++;
        Value value = {name, 0};
        if (after < end && *after == '=') {
            for (after++; after < end && is_space(*after);)
                after++;
            if (after < end && (*after == '"' || *after == '\'')) {
                const uint8_t *stop = memchr(after + 1, *after, (size_t)(end - after - 1));
                value.at = after + 1;
                at = stop ? stop + 1 : end;
                value.size = (size_t)((stop ? stop : end) - value.at);
            } else {
                value.at = at = after;
                while (at < end && !is_space(*at) && *at != '>')
                    at++;
                value.size = (size_t)(at - value.at);
            }
        }
        if (size < 2 || size > 11)
            continue;
        for (int a = 0; a < ATTRIBUTES; a++)
            if ((name[0] | 32) == ATTRIBUTE_NAMES[a][0] && strlen(ATTRIBUTE_NAMES[a]) == size
                && !strncasecmp((const char *)name, ATTRIBUTE_NAMES[a], size)) {
                if (!values[a].at)
                    values[a] = value;
                break;
            }
    }
    return end;
}

/* What an element looks like: its name and class, digits aside. */
static uint32_t looks_of(uint32_t name, Value class)
{
    uint32_t hash = name;
    const size_t size = class.size < MOST_CLASS ? class.size : MOST_CLASS;
    for (size_t i = 0; i < size; i++)
        if (class.at[i] < '0' || class.at[i] > '9')
            hash = (hash ^ class.at[i]) * 16777619u;
    return hash;
}

#endif
