/* Tags, comments and raw text: what they open and close. */

#ifndef REFINERY_HTMLBLOCKS_TAGS_H
#define REFINERY_HTMLBLOCKS_TAGS_H

#include "htmlblocks_inline.h"
#include "htmlblocks_raw.h"
#include "htmlblocks_text.h"

/* Extras: parts of the page that are no text of it. */
enum { X_TITLE, X_LINKED_DATA, X_TYPE, X_DESCRIPTION, X_GENERATOR };
enum { MOST_EXTRA = 1 << 20, LONG_CELL = 200, LONG_FORMULA = 1 << 14 };

static void keep_extra(State *s, int kind, const uint8_t *from, const uint8_t *to)
{
    if (s->extras < MOST_EXTRAS && to > from && to - from <= MOST_EXTRA)
        s->extra[s->extras++] = (Extra){kind, from, (size_t)(to - from)};
}

/* A formula in TeX, between dollar signs. */
static void put_math(State *s, const uint8_t *from, const uint8_t *to, int display)
{
    if (s->effects[IN_MUTED])
        return;
    while (from < to && is_space(*from))
        from++;
    while (to > from && is_space(to[-1]))
        to--;
    if (from == to)
        return;
    const uint8_t *dollars = (const uint8_t *)"$$";
    text_between(s, dollars, dollars + 1 + display, 1);
    text_between(s, from, to, 0);
    text_between(s, dollars, dollars + 1 + display, 1);
}

/* Content of script, style, title, textarea and the like. `at` is behind the start tag. */
static const uint8_t *raw_content(State *s, const uint8_t *at, const Element *element, const uint8_t *name,
                                  const Value *values)
{
    const size_t size = strlen(element->name);
    const uint8_t *stop = element->name[0] == 'i' ? iframe_end(s, at)
                          : element->kind == E_SCRIPT ? script_end(at, s->end) : raw_end(at, s->end, name, size);
    if (element->kind == E_SCRIPT && is(values[A_TYPE], "application/ld+json"))
        keep_extra(s, X_LINKED_DATA, at, stop);
    else if (element->kind == E_SCRIPT && values[A_TYPE].size >= 8 && !memcmp(values[A_TYPE].at, "math/tex", 8))
        put_math(s, at, stop, has(values[A_TYPE], "mode=display"));
    else if (element->kind == E_TITLE && !s->effects[IN_MUTED] && !s->depth)
        keep_extra(s, X_TITLE, at, stop);
    s->inputs += element->kind == E_TEXTAREA;
    if (element->name[0] == 'i' && stop != s->iframe_end)
        return stop;
    const uint8_t *close = stop < s->end ? memchr(stop, '>', (size_t)(s->end - stop)) : NULL;
    return close ? close + 1 : s->end;
}

/* Closes the nearest open element of one of two kinds, unless a fence (or for li, dt, dd another block) is nearer. */
static void close_kind(State *s, int kind, int other, int within)
{
    if (!s->kinds[kind] && !s->kinds[other])
        return;
    for (int level = s->depth - 1; level >= 0; level--) {
        const Open *open = &s->stack[level];
        if (open->hash && (open->kind == kind || open->kind == other)) {
            pop_to(s, level);
            return;
        }
        if (within == E_LI && (open->flags & (BLOCK | CELL)) && open->kind != E_DIV && open->kind != E_P)
            return;
        if (within == E_TABLE ? open->kind == E_TABLE : open->flags & FENCE)
            return;
    }
}

static void close_implied(State *s, const Element *element)
{
    const int kind = element->kind;
    if (element->flags & CLOSES_P) {
        close_kind(s, E_P, E_P, 0);
        if (s->kinds[E_SVG])
            close_kind(s, E_SVG, E_SVG, E_TABLE);
    }
    if (kind == E_LI)
        close_kind(s, E_LI, E_LI, E_LI);
    else if (kind == E_DT || kind == E_DD)
        close_kind(s, E_DT, E_DD, E_LI);
    else if (kind == E_TD || kind == E_TH)
        close_kind(s, E_TD, E_TH, E_TABLE);
    else if (kind == E_TR)
        close_kind(s, E_TR, E_TR, E_TABLE);
    else if (kind == E_TBODY || kind == E_THEAD || kind == E_TFOOT) {
        close_kind(s, E_TBODY, E_THEAD, E_TABLE);
        close_kind(s, E_TFOOT, E_TFOOT, E_TABLE);
    } else if (kind == E_OPTION)
        close_kind(s, E_OPTION, E_OPTION, 0);
    else if (kind == E_A)
        close_kind(s, E_A, E_A, E_LI);
    else if (kind == E_SELECT)
        close_kind(s, E_SELECT, E_SELECT, 0);
    else if (kind == E_RUBY)
        close_kind(s, E_RUBY, E_RUBY, E_LI);
    else if (kind >= E_H1 && kind <= E_H6 && s->depth && s->stack[s->depth - 1].kind >= E_H1
             && s->stack[s->depth - 1].kind <= E_H6)
        pop(s);
}

/* <math>: the TeX that stands in it, if some does. Returns the place behind it, or NULL. */
static const uint8_t *math(State *s, const uint8_t *at, const Value *values)
{
    static const char CLOSE[] = "</math", TEX[] = "application/x-tex";
    if (s->kinds[E_MATH])
        return NULL;
    const size_t most = s->end - at < LONG_FORMULA ? (size_t)(s->end - at) : LONG_FORMULA;
    const uint8_t *stop = memmem(at, most, CLOSE, sizeof CLOSE - 1);
    if (!stop)
        return NULL;
    const uint8_t *tex = memmem(at, (size_t)(stop - at), TEX, sizeof TEX - 1);
    Value formula = values[A_ALTTEXT];
    if (tex) {
        const uint8_t *open = memchr(tex, '>', (size_t)(stop - tex));
        const uint8_t *close = open ? memchr(open, '<', (size_t)(stop - open)) : NULL;
        if (open)
            formula = (Value){open + 1, (size_t)((close ? close : stop) - open - 1)};
    }
    if (!formula.at || !formula.size)
        return NULL;
    put_math(s, formula.at, formula.at + formula.size, is(values[A_DISPLAY], "block"));
    const uint8_t *close = memchr(stop, '>', (size_t)(s->end - stop));
    return close ? close + 1 : s->end;
}

/* A table cell begins: in a simple row it continues the row's block behind a tab. */
static void begin_cell(State *s)
{
    if (!s->open || !s->block[B_ROW] || s->block[B_BREAKS] || s->block[B_SIZE] > LONG_CELL) {
        flush(s);
        return;
    }
    s->block[B_FLAGS] |= F_CELLS;
    s->tabs++;
}

static void empty_element(State *s, const Element *element, const Value *values)
{
    if (element->kind == E_BR && !is_quiet(s)) {
        if (s->spaces == SPACES_STAY)
            put_space(s, '\n');
        else
            put_break(s);
    } else if (element->kind == E_HR) {
        s->rule = 1;
    } else if (element->kind == E_IMG) {
        const Value alt = values[A_ALT];
        s->images++;
        if (alt.at && !is(values[A_ARIA_HIDDEN], "true")
            && (has(values[A_CLASS], "tex") || has(values[A_CLASS], "math")) && has(alt, "\\"))
            put_math(s, alt.at, alt.at + alt.size, 0);
    } else if (element->kind == E_INPUT) {
        s->inputs++;
    } else if (element->kind == E_META && values[A_CONTENT].at) {
        const Value name = values[A_PROPERTY].at ? values[A_PROPERTY] : values[A_NAME];
        const int kind = is(name, "og:type") ? X_TYPE : is(name, "generator") ? X_GENERATOR
                         : is(name, "description") || is(name, "og:description") ? X_DESCRIPTION : -1;
        if (kind >= 0)
            keep_extra(s, kind, values[A_CONTENT].at, values[A_CONTENT].at + values[A_CONTENT].size);
    }
}

static uint32_t effects_of(const State *s, const Element *element, uint32_t flags, Style style, const uint8_t *content,
                           const uint8_t *name, size_t size, const Value *values)
{
    const int kind = element ? element->kind : E_OTHER;
    uint32_t effects = 0;
    if (kind == E_A && values[A_HREF].at)
        effects |= 1u << IN_LINK;
    if (kind == E_B || kind == E_STRONG)
        effects |= 1u << IN_BOLD;
    if (kind == E_PRE || kind == E_PLAIN)
        effects |= 1u << IN_PRE;
    if (kind == E_NOSCRIPT)
        effects |= 1u << IN_NOSCRIPT;
    if (kind == E_TEMPLATE)
        effects |= 1u << IN_TEMPLATE;
    if (kind == E_UL || kind == E_OL)
        effects |= 1u << IN_LIST;
    if (kind == E_QUOTE)
        effects |= 1u << IN_QUOTE;
    if (kind == E_DT)
        effects |= 1u << IN_TERM;
    if (kind == E_TH)
        effects |= 1u << IN_HEAD_CELL;
    if (kind == E_CODE)
        effects |= 1u << IN_CODE;
    /* React streams parts of a page in <div hidden id="S:0">, from where a script moves them into sight. */
    const int streamed = values[A_ID].size > 2 && !memcmp(values[A_ID].at, "S:", 2);
    const int marked = values[A_HIDDEN].at && !streamed && !is(values[A_HIDDEN], "until-found");
    const int hidden = style.display == D_NONE || (marked && style.display == D_UNSET);
    if (hidden)
        effects |= 1u << IN_HIDDEN;
    if (!(flags & (BLOCK | CELL)) && is_left_out(s, kind, hidden, style, content, name, size, values))
        effects |= 1u << IN_ASIDE;
    if (flags & MUTED || has(values[A_CLASS], "katex-html") || has(values[A_CLASS], "headerlink")
        || (!(flags & FORMULA) && values[A_CLASS].size >= 7 && !memcmp(values[A_CLASS].at, "MathJax", 7)))
        effects |= 1u << (kind == E_A ? IN_ASIDE : IN_MUTED);
    return effects;
}

/* Whether an inline element is a thing of its own, which may have no space beside another. */
static int is_piece(int kind, int flags)
{
    return kind == E_A || kind == E_SPAN || kind == E_TIME || (flags & SOFT && !(flags & BLOCK));
}

static void start_tag(State *s, const uint8_t *name, size_t size)
{
    const uint32_t hash = name_hash(name, size);
    const Element *element = find_element(name, size, hash);
    Value values[ATTRIBUTES];
    int self_closing;
    const uint8_t *behind = read_attributes(name + size, s->end, values, &self_closing);
    s->tag = s->at;
    const Style style = values[A_STYLE].at ? style_of(values[A_STYLE]) : (Style){0};
    /* An element that the standard does not know is a component if its name has a hyphen. */
    uint32_t flags = element ? (uint32_t)element->flags : memchr(name, '-', size) ? BLOCK | SOFT : 0;
    if (flags & SOFT || style.display)
        flags = flags_here(s, element, flags, style, behind, name, size);
    uint64_t groups = element && element->group >= 0 ? (uint64_t)1 << element->group : 0;
    for (int a = A_CLASS; a <= A_ITEMPROP; a++)
        if (values[a].at)
            groups |= groups_of(values[a].at, values[a].size < MOST_CLASS ? values[a].size : MOST_CLASS);
    if (!element && flags & BLOCK)
        groups |= groups_of(name, size);
    if (flags & NO_ELEMENT) {
        if (element->kind == E_BODY)
            s->body_groups |= groups;
        if (flags & BLOCK)
            flush(s);
        s->at = behind;
        return;
    }
    if (element)
        close_implied(s, element);
    if (flags & BLOCK && !is_quiet(s))
        flush(s);
    if (flags & RAW) {
        s->at = raw_content(s, behind, element, name, values);
        return;
    }
    if (flags & EMPTY) {
        empty_element(s, element, values);
        s->at = behind;
        return;
    }
    if (element && element->kind == E_MATH) {
        const uint8_t *after = math(s, behind, values);
        if (after) {
            s->at = after;
            return;
        }
    }
    s->at = behind;
    if (self_closing && (!element || s->kinds[E_SVG] || element->kind == E_SVG))
        return;
    Open open = {.hash = hash, .looks = looks_of(hash, values[A_CLASS]), .kind = element ? element->kind : E_OTHER,
                 .flags = (int)flags, .groups = groups, .spaces = style.spaces};
    if (groups >> G_HIDDEN & 1 && is_spoken(values[A_CLASS]))
        open.flags |= SPOKEN;
    open.effects = effects_of(s, element, flags, style, behind, name, size, values);
    if (!open.spaces && open.effects >> IN_PRE & 1)
        open.spaces = SPACES_STAY;
    if (open.effects >> IN_HIDDEN & 1)
        open.groups |= (uint64_t)1 << T_HIDDEN;
    if (flags & CELL)
        begin_cell(s);
    if (open.kind == E_TR)
        open.number = ++s->rows;
    for (int level = s->kinds[E_TR] && flags & CELL ? s->depth - 1 : -1; level >= 0 && s->stack[level].kind != E_TABLE; level--)
        if (s->stack[level].kind == E_TR) {
            open.number = ++s->stack[level].cells;
            break;
        }
    if (open.kind == E_LI) {
        open.number = -1;
        for (int level = s->depth - 1, steps = 0; level >= 0 && steps < 8; level--, steps++) {
            if (s->stack[level].kind == E_OL) {
                open.number = ++s->stack[level].number;
                break;
            }
            if (s->stack[level].kind == E_UL || s->stack[level].flags & FENCE)
                break;
        }
    }
    if (open.kind == E_OL && values[A_START].at)
        for (size_t i = 0; i < values[A_START].size && i < 6 && values[A_START].at[i] >= '0'
                           && values[A_START].at[i] <= '9'; i++)
            open.number = open.number * 10 + values[A_START].at[i] - '0' - (i + 1 == values[A_START].size);
    if (open.effects >> IN_LINK & 1) {
        if (s->open)
            s->block[B_LINKS]++;
        else
            s->links++;
    }
    if (is_piece(open.kind, open.flags)) {
        s->joint = s->joint ? 2 : 0;
        s->piece = s->out.size;
    }
    push(s, &open);
    if (open.effects >> IN_PRE & 1)
        s->indent = -1;
}

static void end_tag(State *s, const uint8_t *name, size_t size)
{
    const uint32_t hash = name_hash(name, size);
    const Element *element = find_element(name, size, hash);
    const uint8_t *stop = memchr(name, '>', (size_t)(s->end - name));
    s->at = stop ? stop + 1 : s->end;
    const int kind = element ? element->kind : E_OTHER, flags = element ? element->flags : 0;
    if (s->overflow > 0) {
        s->overflow--;
        if (flags & BLOCK)
            flush(s);
        return;
    }
    const int heading = kind >= E_H1 && kind <= E_H6;
    if (!s->names[hash % NAME_COUNTS] && !heading) {
        if (kind == E_P)
            flush(s);
        else if (kind == E_BR)
            empty_element(s, element, (Value[ATTRIBUTES]){{NULL, 0}});
        return;
    }
    const int table = flags & FENCE || kind == E_TR || kind == E_TBODY || kind == E_THEAD || kind == E_TFOOT;
    int blocks = 0;
    for (int level = s->depth - 1; level >= 0; level--) {
        Open *open = &s->stack[level];
        if (open->hash == hash || (heading && open->hash && open->kind >= E_H1 && open->kind <= E_H6)) {
            if (blocks && !(open->flags & (BLOCK | CELL | FENCE | SOFT))) {
                if (flags & FORMAT)
                    end_effects(s, open);
                return;
            }
            const int own = open->kind, its = open->flags;
            pop_to(s, level);
            /* Letters that are elements of their own, as initials are, belong together. */
            if (is_piece(own, its))
                s->joint = own == E_A || !is_one_letter(s);
            if (its & SPOKEN)
                s->spoken = s->at;
            return;
        }
        blocks += (open->flags & (BLOCK | CELL)) != 0;
        if (open->flags & FENCE && (!table || (open->kind == E_TABLE && open->hash)))
            return;
    }
}

/* What begins with "<". */
static void markup(State *s)
{
    const uint8_t *at = s->at + 1;
    const size_t left = (size_t)(s->end - at);
    if (s->kinds[E_PLAIN]) {
        text_run(s, s->at, s->end);
        s->at = s->end;
    } else if (left && letter_of(*at)) {
        const uint8_t *stop = at;
        while (stop < s->end && !is_space(*stop) && *stop != '/' && *stop != '>')
            stop++;
        start_tag(s, at, (size_t)(stop - at));
    } else if (left > 1 && *at == '/' && letter_of(at[1])) {
        const uint8_t *stop = ++at;
        while (stop < s->end && !is_space(*stop) && *stop != '/' && *stop != '>')
            stop++;
        end_tag(s, at, (size_t)(stop - at));
    } else if (left > 2 && *at == '!' && at[1] == '-' && at[2] == '-') {
        if (left > 3 && (at[3] == '>' || (at[3] == '-' && left > 4 && at[4] == '>'))) {
            s->at = at + (at[3] == '>' ? 4 : 5);
            return;
        }
        const uint8_t *stop = at + 3;
        while (stop < s->end && (stop = memchr(stop, '-', (size_t)(s->end - stop)))) {
            if (s->end - stop > 2 && stop[1] == '-' && (stop[2] == '>' || (stop[2] == '!' && s->end - stop > 3 && stop[3] == '>')))
                break;
            stop++;
        }
        s->at = stop && stop < s->end ? stop + (stop[2] == '>' ? 3 : 4) : s->end;
    } else if (left && (*at == '!' || *at == '?' || (*at == '/' && left > 1 && at[1] != ' '))) {
        const uint8_t *stop = memchr(at, '>', left);
        s->at = stop ? stop + 1 : s->end;
    } else {
        text_run(s, s->at, at);
        s->at = at;
    }
}

#endif
