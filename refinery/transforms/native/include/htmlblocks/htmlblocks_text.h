/* Characters of a block: entities decoded, spaces collapsed, counted by type. */

#ifndef REFINERY_HTMLBLOCKS_TEXT_H
#define REFINERY_HTMLBLOCKS_TEXT_H

#include "htmlblocks_stack.h"
#include "htmlblocks_characters.h"
#include "htmlblocks_shortcodes.h"

enum { LONG_CLAUSE = 40 /* letters of a script without spaces and stops */ };

static uint8_t ascii_types[128];

static void make_types(void)
{
    for (uint32_t c = 0; c < 128; c++)
        ascii_types[c] = (uint8_t)type_of(c);
}

/* The code point at `at` (valid UTF-8, as Python makes it) and its bytes. */
static inline uint32_t decode(const uint8_t *at, const uint8_t *end, size_t *size)
{
    const size_t left = (size_t)(end - at);
    if (*at < 0x80 || left < 2)
        return *size = 1, *at;
    if (*at < 0xE0 || left < 3)
        return *size = 2, (uint32_t)(at[0] & 31) << 6 | (at[1] & 63);
    if (*at < 0xF0 || left < 4)
        return *size = 3, (uint32_t)(at[0] & 15) << 12 | (uint32_t)(at[1] & 63) << 6 | (at[2] & 63);
    return *size = 4, (uint32_t)(at[0] & 7) << 18 | (uint32_t)(at[1] & 63) << 12 | (uint32_t)(at[2] & 63) << 6
                      | (at[3] & 63);
}

static inline size_t encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80)
        return out[0] = (uint8_t)c, 1;
    if (c < 0x800)
        return out[0] = (uint8_t)(0xC0 | c >> 6), out[1] = (uint8_t)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (uint8_t)(0xE0 | c >> 12), out[1] = (uint8_t)(0x80 | (c >> 6 & 63)),
               out[2] = (uint8_t)(0x80 | (c & 63)), 3;
    return out[0] = (uint8_t)(0xF0 | c >> 18), out[1] = (uint8_t)(0x80 | (c >> 12 & 63)),
           out[2] = (uint8_t)(0x80 | (c >> 6 & 63)), out[3] = (uint8_t)(0x80 | (c & 63)), 4;
}

/* A line ends inside a block; a second one ends the block. */
static void put_break(State *s)
{
    if (s->open && s->newline) {
        flush(s);
        s->broken = s->gap = 1;
    } else if (s->open) {
        end_run(s);
        s->newline = s->gap = 1;
        s->pad = 0;
        s->block[B_BREAKS]++;
    } else if (s->broken) {
        s->indent = 0;
        s->gap = 1;
    }
}

/* A space comes. At most one is written, and none at a line's start, but for those that CSS collapses never: behind a
 * line break they indent the line, as in poems and in code without <pre>. In preformatted text all stay. */
static inline void put_space(State *s, uint8_t c)
{
    if (s->open)
        end_run(s);
    if (s->spaces < SPACES_LINES && !s->newline && !s->broken) {
        s->space |= 1 + (c == '\n');
    } else if (s->spaces < SPACES_STAY) {
        if (s->spaces == SPACES_LINES && c == '\n') {
            put_break(s);
            return;
        }
        s->space |= 1 + (c == '\n');
        const int shown = c >= 0x80 || !s->gap;
        s->gap = c < 0x80;
        if (s->open && s->newline && shown && s->pad < MOST_INDENT)
            s->pad++;
        else if (!s->open && s->broken && shown && s->indent < MOST_INDENT)
            s->indentation[s->indent++] = ' ';
    } else if (s->open) {
        if (c != '\r')
            s->out.data[s->out.size++] = c == '\n' || c == '\t' ? c : ' ';
    } else if (c == '\n') {
        s->indent = 0;
    } else if (s->indent < MOST_INDENT && c != '\r') {
        s->indentation[s->indent++] = c == '\t' ? '\t' : ' ';
    }
}

static inline int is_blank(uint8_t c) { return c == ' ' || c == '\n' || c == '\t'; }

/* Whether a character is as wide as an ideograph: CSS Text 3, section 4.1.3, takes a line end between two of them away. */
static inline int is_wide(const uint8_t *bytes, size_t size, int type)
{
    return type == IDEOGRAPH || type == WIDE_STOP
           || (size == 3 && (bytes[0] == 0xE3 || (bytes[0] == 0xEF && bytes[1] >= 0xBC)));
}

/* The last character of the block that is being read. There is one. */
static uint32_t last_character(const State *s, const uint8_t **at, size_t *size)
{
    const uint8_t *end = s->out.data + s->out.size, *start = s->out.data + s->block[B_START];
    for (*at = end - 1; *at > start && (**at & 0xC0) == 0x80;)
        --*at;
    return decode(*at, end, size);
}

static int follows_wide(const State *s)
{
    const uint8_t *at;
    size_t size;
    const int type = type_of(last_character(s, &at, &size));
    return is_wide(at, size, type);
}

/* Whether what was written since `piece` is one letter. */
static int is_one_letter(const State *s)
{
    const uint8_t *at;
    size_t size;
    if (!s->open || s->out.size <= (size_t)s->block[B_START] || s->out.size <= s->piece || s->out.size - s->piece > 5)
        return 0;
    const int type = type_of(last_character(s, &at, &size));
    const uint8_t *from = s->out.data + s->piece;
    from += is_blank(*from) && from < at;
    return from == at && (type == LOWER || type == UPPER || type >= LETTER);
}

/* Whether the elements whose border is here are two things, though no space is between them. */
static inline int is_border(const State *s, int type)
{
    if (s->joint != 2 || !s->run || s->effects[IN_PRE] || s->effects[IN_CODE])
        return 0;
    if (s->last_type == 0)
        return type <= DIGIT || type == LETTER || type == SYLLABLE;
    return s->last_type == 1 && type == UPPER && s->run > 3; /* "said.It", not "U.S." */
}

/* Greek and Cyrillic capitals as small letters; what else there is stays. */
static const uint8_t *in_small_letters(const uint8_t *bytes, uint8_t *small)
{
    const uint32_t c = (uint32_t)(bytes[0] & 31) << 6 | (bytes[1] & 63);
    const uint32_t more = (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F) ? 32 : c >= 0x400 && c < 0x410 ? 80 : 0;
    small[0] = (uint8_t)(0xC0 | (c + more) >> 6);
    small[1] = (uint8_t)(0x80 | ((c + more) & 63));
    return small;
}

/* One visible character. There is room for it and for what stands before it. */
static inline void put(State *s, const uint8_t *bytes, size_t size, int type)
{
    if (type == INVISIBLE) { /* joiners and variation selectors belong to the character before them */
        if (s->open && !s->space && !s->newline && !s->tabs && size == 3 && s->run
            && ((bytes[0] == 0xE2 && bytes[1] == 0x80 && (bytes[2] == 0x8C || bytes[2] == 0x8D))
                || (bytes[0] == 0xEF && bytes[1] == 0xB8)))
            for (size_t i = 0; i < size; i++)
                s->out.data[s->out.size++] = bytes[i];
        return;
    }
    if (!s->open) {
        open_block(s);
        s->block[B_FLAGS] |= (type == UPPER ? F_UPPER_START : 0) | (type == DIGIT ? F_DIGIT_START : 0);
    } else if (s->tabs) {
        while (s->tabs > 0 && reserve(&s->out, 64)) {
            s->out.data[s->out.size++] = '\t';
            s->tabs--;
        }
        s->newline = s->space = 0;
        end_run(s);
    } else if (s->newline) {
        s->out.data[s->out.size++] = '\n';
        memset(s->out.data + s->out.size, ' ', (size_t)s->pad);
        s->out.size += (size_t)s->pad;
        end_run(s);
    } else if (s->space) {
        if (!(s->space & 2) || !is_wide(bytes, size, type) || !follows_wide(s))
            s->out.data[s->out.size++] = ' ';
    } else if (is_border(s, type)) {
        s->out.data[s->out.size++] = ' ';
        end_run(s);
    }
    s->newline = s->space = s->joint = 0;
    int32_t *b = s->block;
    int weight = 1;
    switch (type) {
    case LOWER: case LETTER:
        s->last_type = 0;
        break;
    case UPPER:
        b[B_UPPER]++;
        s->run_upper |= s->run == 0;
        s->last_type = 0;
        break;
    case DIGIT:
        b[B_DIGITS]++;
        s->last_type = 0;
        break;
    case STOP:
        s->last_type = 1;
        break;
    case WIDE_STOP: case NARROW_STOP:
        b[B_SENTENCES]++;
        weight = type == WIDE_STOP ? 3 : 1;
        s->last_type = 4;
        s->clause = 0;
        break;
    case COLON:
        b[B_COMMAS]++;
        s->last_type = 2;
        break;
    case COMMA:
        b[B_COMMAS]++;
        s->last_type = 3;
        break;
    case QUOTE:
        break;
    case MONEY:
        b[B_CURRENCY]++;
        s->last_type = 3;
        break;
    case IDEOGRAPH:
        weight = 3;
        s->last_type = 0;
        break;
    case SYLLABLE:
        weight = 2;
        s->last_type = 0;
        break;
    default:
        b[B_SYMBOLS] += type == SYMBOL;
        s->last_type = type == NO_SPACES ? 0 : 3;
        /* Thai and Lao have no stops: a clause is so long, a title and an item of a menu are not. */
        if (type == NO_SPACES && ++s->clause == LONG_CLAUSE)
            b[B_SENTENCES]++;
    }
    b[B_SIZE] += weight;
    if (type == IDEOGRAPH || type == NO_SPACES || type == WIDE_STOP || type == NARROW_STOP) {
        if (b[B_SIZE] / 5 != (b[B_SIZE] - weight) / 5)
            b[B_WORDS]++;
    } else {
        s->run++;
    }
    if (type == LOWER || type == UPPER || type >= LETTER) {
        uint8_t small[4];
        const uint8_t *letter = type == UPPER && size == 2 ? in_small_letters(bytes, small) : bytes;
        for (size_t i = 0; i < size; i++) {
            const uint8_t c = type == UPPER && size == 1 ? bytes[i] | 32 : letter[i];
            s->word = (s->word ^ c) * 16777619u;
            s->whole = (s->whole ^ c) * 16777619u;
        }
        s->word_size++;
    } else {
        end_letters(s);
    }
    for (size_t i = 0; i < size; i++)
        s->out.data[s->out.size++] = bytes[i];
}

/* A character reference at `at`, after its "&"; its UTF-8 and where it ends, or 0. */
static size_t reference(const uint8_t *at, const uint8_t *end, uint8_t *text, const uint8_t **stop)
{
    static const uint16_t windows[32] = {
        0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D,
        0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D,
        0x17E, 0x178,
    };
    if (at < end && *at == '#') {
        const int hex = end - at > 1 && (at[1] | 32) == 'x';
        const uint8_t *digit = at + 1 + hex, *first = digit;
        uint32_t c = 0;
        for (; digit < end; digit++) {
            const uint8_t lower = *digit | 32;
            const int value = *digit >= '0' && *digit <= '9' ? *digit - '0'
                              : hex && lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
            if (value < 0)
                break;
            if (c < 0x200000)
                c = c * (hex ? 16 : 10) + (uint32_t)value;
        }
        if (digit == first)
            return 0;
        *stop = digit + (digit < end && *digit == ';');
        if (c >= 128 && c < 160)
            c = windows[c - 128];
        if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            c = 0xFFFD;
        return encode(c, text);
    }
    size_t size = 0;
    while (at + size < end && size < LONGEST_REFERENCE - 1
           && ((at[size] >= '0' && at[size] <= '9') || letter_of(at[size])))
        size++;
    size += at + size < end && at[size] == ';';
    for (; size > 1; size--) {
        const uint32_t hash = reference_hash(at, size);
        for (uint32_t slot = hash % REFERENCE_SLOTS; references[slot].size; slot = (slot + 1) % REFERENCE_SLOTS)
            if (references[slot].hash == hash && references[slot].size == size
                && !memcmp(references[slot].name, at, size)) {
                memcpy(text, references[slot].text, references[slot].length);
                *stop = at + size;
                return references[slot].length;
            }
        if (size > 8)
            size = 8; /* without a semicolon only short names are known */
    }
    return 0;
}

/* Text of the page from `at` to `end`; `literal`: without references. */
static void text_between(State *s, const uint8_t *at, const uint8_t *end, int literal)
{
    if (!reserve(&s->out, 2 * (size_t)(end - at) + 2 * MOST_INDENT + 256)) {
        s->failed = 1;
        return;
    }
    const int32_t before = s->open ? s->block[B_SIZE] : 0;
    if (s->indent == -1) { /* the line end right after <pre> */
        at += at < end && *at == '\r';
        at += at < end && *at == '\n';
        s->indent = 0;
    }
    while (at < end) {
        const uint8_t c = *at;
        size_t size = 1;
        if (c == '&' && !literal) {
            uint8_t text[16];
            const uint8_t *stop;
            const size_t length = reference(at + 1, end, text, &stop);
            for (size_t i = 0; i < length; i += size) {
                const int type = type_of(decode(text + i, text + length, &size));
                if (type == SPACE)
                    put_space(s, text[i]);
                else
                    put(s, text + i, size, type);
            }
            if (length) {
                at = stop;
                continue;
            }
            size = 1;
        }
        const int type = c < 0x80 ? ascii_types[c] : type_of(decode(at, end, &size));
        if (type == OTHER && c == '[' && !literal && !s->effects[IN_PRE] && !s->effects[IN_CODE]) {
            const uint8_t *stop = shortcode_end(s, at, end);
            if (stop) {
                put_space(s, ' ');
                at = stop;
                continue;
            }
        }
        if (type == SPACE)
            put_space(s, c);
        else
            put(s, at, size, type);
        at += size;
    }
    if (s->open) {
        const int32_t more = s->block[B_SIZE] - before;
        s->block[B_LINKED] += s->effects[IN_LINK] ? more : 0;
        s->block[B_BOLD] += s->effects[IN_BOLD] ? more : 0;
    }
}

static void text_run(State *s, const uint8_t *at, const uint8_t *end)
{
    if (!s->effects[IN_MUTED] && !s->effects[IN_ASIDE])
        text_between(s, at, end, 0);
}

#endif
