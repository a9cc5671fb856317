/* Where elements end whose content is no markup. */

#ifndef REFINERY_HTMLBLOCKS_RAW_H
#define REFINERY_HTMLBLOCKS_RAW_H

#include "htmlblocks_attributes.h"

/* The end tag of a raw element, or the end of the page. */
static const uint8_t *raw_end(const uint8_t *at, const uint8_t *end, const uint8_t *name, size_t size)
{
    while (at < end && (at = memchr(at, '<', (size_t)(end - at)))) {
        if ((size_t)(end - at) > size + 1 && at[1] == '/'
            && !strncasecmp((const char *)at + 2, (const char *)name, size)) {
            const uint8_t *after = at + 2 + size;
            if (after == end || is_space(*after) || *after == '>' || *after == '/')
                return at;
        }
        at++;
    }
    return end;
}

/* The end tag of a script, or the end of the page: in a script's <!-- --> another <script> has an end tag of its own (the
 * standard's states from 13.2.5.15, "script data escaped", on). */
static const uint8_t *script_end(const uint8_t *at, const uint8_t *end)
{
    enum { PLAIN, ESCAPED, DOUBLE } state = PLAIN;
    for (; at < end; at++) {
        if (state == PLAIN) {
            if (!(at = memchr(at, '<', (size_t)(end - at))))
                return end;
        } else if (*at == '-') {
            if (end - at > 2 && at[1] == '-' && at[2] == '>')
                state = PLAIN;
            continue;
        } else if (*at != '<') {
            continue;
        }
        const size_t left = (size_t)(end - at);
        if (state == PLAIN && left > 3 && !memcmp(at, "<!--", 4)) {
            state = ESCAPED;
            at += 1; /* "<!-->" and "<!--->" end it at once: their dashes are read again */
            continue;
        }
        const int close = left > 1 && at[1] == '/';
        if (state == PLAIN && !close)
            continue;
        const uint8_t *name = at + 1 + close;
        if ((size_t)(end - name) < 6 || strncasecmp((const char *)name, "script", 6))
            continue;
        if (end - name > 6 && !is_space(name[6]) && name[6] != '>' && name[6] != '/')
            continue;
        if (close && state != DOUBLE)
            return at;
        if (state == ESCAPED)
            state = DOUBLE;
        else if (state == DOUBLE && close)
            state = ESCAPED;
    }
    return end;
}

/* The end of an iframe's content: at once where no end tag follows, since the rest of the page would be lost, and with the
 * <noscript> around it, which is raw text in browsers with scripts: <noscript><iframe/></noscript>. */
static const uint8_t *iframe_end(State *s, const uint8_t *at)
{
    if (!s->iframe_end || s->iframe_end < at)
        s->iframe_end = raw_end(at, s->end, (const uint8_t *)"iframe", 6);
    if (s->iframe_end == s->end)
        return at;
    return s->effects[IN_NOSCRIPT] ? raw_end(at, s->iframe_end, (const uint8_t *)"noscript", 8) : s->iframe_end;
}

#endif
