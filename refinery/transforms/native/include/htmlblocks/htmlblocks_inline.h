/* What belongs to a line: which elements run on within a sentence, and what of a line is not for the eye.
 *
 * By the HTML standard's style sheet (section 15.3) custom elements, button, label, object, iframe, video, noscript and
 * their like are inline. Sites make boxes of many of them, which no page says without its style sheets. So they are
 * inline where a sentence must be thought to run on: in a paragraph, a heading, a cell, in preformatted text, and where
 * text touches their tags; elsewhere they are blocks. aria-hidden hides from ears, not from eyes: what it says is left
 * out only where it is said twice. */

#ifndef REFINERY_HTMLBLOCKS_INLINE_H
#define REFINERY_HTMLBLOCKS_INLINE_H

#include "htmlblocks_style.h"
#include "htmlblocks_text.h"

enum { NEAR_END = 512 /* bytes in which an end tag is looked for */, MOST_STEPS = 32, SHORTEST_TWIN = 2 };

static inline int is_name_end(uint8_t c) { return is_space(c) || c == '>' || c == '/'; }

/* Elements that only change how text looks. */
static int is_formatting(const uint8_t *name, size_t size)
{
    const Element *element = find_element(name, size, name_hash(name, size));
    return element && (element->flags & FORMAT) && element->kind != E_A;
}

/* Whether the tag that is being read has text before it, formatting aside. */
static int text_before(const State *s)
{
    const uint8_t *at = s->tag;
    if (!s->open)
        return 0;
    for (int steps = 0; steps < 4; steps++) {
        while (at > s->start && is_space(at[-1]))
            at--;
        if (at == s->start || at[-1] != '>')
            return at > s->start;
        const size_t most = (size_t)(at - s->start) < NEAR_END ? (size_t)(at - s->start) : NEAR_END;
        const uint8_t *tag = memrchr(at - most, '<', most);
        if (!tag)
            return 0;
        const uint8_t *name = tag + 1 + (tag[1] == '/'), *stop = name;
        while (stop < at && !is_name_end(*stop))
            stop++;
        if (*name != '!' && !is_formatting(name, (size_t)(stop - name)))
            return 0;
        at = tag;
    }
    return 0;
}

/* Behind comments, spaces and formatting. */
static const uint8_t *behind_formatting(const uint8_t *at, const uint8_t *end)
{
    for (int steps = 0; steps < 4; steps++) {
        while (at < end && is_space(*at))
            at++;
        if (end - at < 2 || *at != '<')
            return at;
        if (at[1] == '!') {
            const int comment = end - at > 3 && at[2] == '-' && at[3] == '-';
            const size_t most = end - at < NEAR_END ? (size_t)(end - at) : NEAR_END;
            const uint8_t *stop = comment ? memmem(at + 2, most - 2, "-->", 3) : memchr(at, '>', most);
            if (!stop)
                return at;
            at = stop + (comment ? 3 : 1);
            continue;
        }
        const uint8_t *name = at + 1 + (at[1] == '/'), *stop = name;
        while (stop < end && stop - name < 16 && !is_name_end(*stop))
            stop++;
        if (stop == end || *stop != '>' || !is_formatting(name, (size_t)(stop - name)))
            return at;
        at = stop + 1;
    }
    return at;
}

/* The end tag of the element whose content begins at `at`, if it is near; elements of its name in it are counted. */
static const uint8_t *near_end_tag(const State *s, const uint8_t *at, const uint8_t *name, size_t size)
{
    const uint8_t *end = s->end - at > NEAR_END ? at + NEAR_END : s->end;
    int open = 1;
    while (at < end && (at = memchr(at, '<', (size_t)(end - at)))) {
        const int close = end - at > 1 && at[1] == '/';
        const uint8_t *other = at + 1 + close;
        if ((size_t)(end - other) > size && !strncasecmp((const char *)other, (const char *)name, size)
            && is_name_end(other[size]) && (open += close ? -1 : 1) == 0)
            return at;
        at++;
    }
    return NULL;
}

static const uint8_t *behind_tag(const State *s, const uint8_t *at)
{
    const uint8_t *stop = memchr(at, '>', (size_t)(s->end - at));
    return stop ? stop + 1 : s->end;
}

static int is_heading(int kind) { return kind >= E_H1 && kind <= E_H6; }

/* The kind of the nearest block or cell around. */
static int container(const State *s)
{
    for (int level = s->depth - 1, steps = 0; level >= 0 && steps < MOST_STEPS; level--, steps++)
        if (s->stack[level].flags & (BLOCK | CELL))
            return s->stack[level].kind;
    return E_OTHER;
}

/* Whether an element that may be either is inline. content: behind its start tag. */
static int runs_on(const State *s, const uint8_t *content, const uint8_t *name, size_t size)
{
    const int kind = container(s);
    if (s->effects[IN_PRE] || kind == E_P || is_heading(kind) || kind == E_TD || kind == E_TH || kind == E_CAPTION
        || kind == E_DT)
        return 1;
    if (text_before(s))
        return 1;
    const uint8_t *close = near_end_tag(s, content, name, size), *next = close ? behind_formatting(behind_tag(s, close), s->end) : s->end;
    return next < s->end && *next != '<';
}

/* The flags of an element by its style and place. */
static uint32_t flags_here(const State *s, const Element *element, uint32_t flags, Style style, const uint8_t *content,
                           const uint8_t *name, size_t size)
{
    static const uint32_t fixed = CELL | FENCE | RAW | NO_ELEMENT | EMPTY;
    const int kind = element ? element->kind : E_OTHER;
    const int plain = kind == E_OTHER || kind == E_DIV || kind == E_P || kind == E_SECTION || kind == E_ARTICLE
                      || kind == E_FORM || kind == E_BUTTON || kind == E_LABEL;
    int soft = (flags & SOFT) != 0;
    if (style.display == D_BLOCK && !(flags & (BLOCK | fixed)))
        return flags | BLOCK;
    if (plain && !(flags & fixed)) {
        if (style.display == D_INLINE && flags & BLOCK)
            return (flags & ~(uint32_t)BLOCK) | SOFT;
        if (style.display == D_BLOCK)
            return flags & ~(uint32_t)SOFT;
        soft |= style.display == D_ALONGSIDE && flags & BLOCK;
    }
    return soft && runs_on(s, content, name, size) ? (flags & ~(uint32_t)BLOCK) | SOFT : flags & ~(uint32_t)SOFT;
}

/* Whether a class is one of those that show a text to screen readers alone. */
static int is_spoken(Value class)
{
    static const char *const words[] = {"sr-only", "sronly", "visually-hidden", "visuallyhidden", "visually_hidden",
                                        "screen-reader", "screenreader", "offscreen", "off-screen", "hiddenvisually",
                                        "clipped"};
    for (size_t w = 0; class.at && class.size <= MOST_CLASS && w < sizeof words / sizeof *words; w++) {
        const size_t size = strlen(words[w]);
        for (size_t i = 0; i + size <= class.size; i++)
            if ((class.at[i] | 32) == words[w][0] && !strncasecmp((const char *)class.at + i, words[w], size))
                return 1;
    }
    return 0;
}

/* Whether the element that begins at `at`, if one does, is for screen readers. */
static int spoken_next(const State *s, const uint8_t *at)
{
    while (at < s->end && is_space(*at))
        at++;
    if (s->end - at < 3 || *at != '<' || !letter_of(at[1]))
        return 0;
    const uint8_t *stop = memchr(at, '>', s->end - at > NEAR_END ? NEAR_END : (size_t)(s->end - at));
    const uint8_t *class = stop ? memmem(at, (size_t)(stop - at), "class=", 6) : NULL;
    return class && is_spoken((Value){class, (size_t)(stop - class)});
}

/* The characters from `at` to `end`, at most NEAR_END, without tags and the spaces around. */
static size_t plain(const uint8_t *at, const uint8_t *end, uint8_t *out)
{
    size_t size = 0;
    while (at < end) {
        if (*at == '<') {
            const uint8_t *stop = memchr(at, '>', (size_t)(end - at));
            at = stop ? stop + 1 : end;
        } else if (size > 0 || !is_space(*at)) {
            out[size++] = *at++;
        } else {
            at++;
        }
    }
    while (size > 0 && is_space(out[size - 1]))
        size--;
    return size;
}

/* Whether the text of an element with aria-hidden is said again right beside it: for screen readers, or word by word. */
static int has_twin(const State *s, const uint8_t *content, const uint8_t *name, size_t size)
{
    if (s->spoken && s->open) {
        const uint8_t *at = s->spoken;
        while (at < s->tag && is_space(*at))
            at++;
        if (at == s->tag)
            return 1;
    }
    const uint8_t *close = near_end_tag(s, content, name, size);
    if (!close)
        return 0;
    const uint8_t *next = behind_tag(s, close);
    if (spoken_next(s, next))
        return 1;
    uint8_t said[NEAR_END], again[NEAR_END];
    const size_t length = plain(content, close, said);
    if (length < SHORTEST_TWIN)
        return 0;
    if (s->open && s->tag > s->start && s->tag[-1] == '>' && s->out.size - (size_t)s->block[B_START] >= length
        && !memcmp(s->out.data + s->out.size - length, said, length))
        return 1;
    if (s->end - next < 3 || *next != '<' || !letter_of(next[1]))
        return 0;
    const uint8_t *end = next + 1;
    while (end < s->end && !is_name_end(*end))
        end++;
    const uint8_t *other = behind_tag(s, next), *stop = near_end_tag(s, other, next + 1, (size_t)(end - next - 1));
    return stop && plain(other, stop, again) == length && !memcmp(said, again, length);
}

/* Whether a link is the sign beside a heading that has its address: "#" and the like, no letter and no digit. */
static int is_anchor_sign(const State *s, const uint8_t *content, const Value *values)
{
    if (!values[A_HREF].size || values[A_HREF].at[0] != '#' || !is_heading(container(s)))
        return 0;
    const uint8_t *at = content, *end = s->end - at > 16 ? at + 16 : s->end;
    size_t size;
    for (; at < end && *at != '<'; at += size) {
        const int type = type_of(decode(at, end, &size));
        if (*at == '&' || (type != SYMBOL && type != SPACE && type != INVISIBLE && type != OTHER))
            return 0;
    }
    return at < end && at > content && end - at > 2 && at[1] == '/';
}

/* Whether an element inside a line is left out with its text. */
static int is_left_out(const State *s, int kind, int hidden, Style style, const uint8_t *content, const uint8_t *name,
                       size_t size, const Value *values)
{
    if (hidden || style.visibility == V_INVISIBLE || is(values[A_CLASS], "d-none") || is(values[A_ROLE], "tooltip")
        || has(values[A_ID], "tooltip"))
        return 1;
    /* Fonts whose ligatures make pictures of words: "arrow_forward". */
    if (has(values[A_CLASS], "material-") && (has(values[A_CLASS], "material-icons") || has(values[A_CLASS], "material-symbols")))
        return 1;
    if (is(values[A_ARIA_HIDDEN], "true") && has_twin(s, content, name, size))
        return 1;
    return kind == E_A && is_anchor_sign(s, content, values);
}

#endif
