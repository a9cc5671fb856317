/* What a character is to the features of a block, in any script (Unicode 15: categories Nd, Lu, Po, Zs; UAX #14, class SA). */

#ifndef REFINERY_HTMLBLOCKS_CHARACTERS_H
#define REFINERY_HTMLBLOCKS_CHARACTERS_H

#include <stddef.h>
#include <stdint.h>

/* WIDE_STOP, NARROW_STOP: ends a sentence with no space behind it. */
enum { SPACE, LOWER, UPPER, DIGIT, STOP, COLON, COMMA, QUOTE, SYMBOL, MONEY, LETTER, IDEOGRAPH, NO_SPACES, SYLLABLE,
       INVISIBLE, OTHER, WIDE_STOP, NARROW_STOP };

/* The first of ten decimal digits in each script below U+2000. */
static const uint16_t DIGITS[] = {0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
                                  0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810};

static int is_digit(uint32_t c)
{
    for (size_t i = 0; i < sizeof DIGITS / sizeof *DIGITS && c >= DIGITS[i]; i++)
        if (c < DIGITS[i] + 10u)
            return 1;
    return 0;
}

static int type_of(uint32_t c)
{
    if (c < 0x80) {
        if (c >= 'a' && c <= 'z')
            return LOWER;
        if (c >= 'A' && c <= 'Z')
            return UPPER;
        if (c >= '0' && c <= '9')
            return DIGIT;
        switch (c) {
        case ' ': case '\t': case '\n': case '\r': case '\f':
            return SPACE;
        case '.': case '!': case '?':
            return STOP;
        case ':':
            return COLON;
        case ',': case ';':
            return COMMA;
        case '"': case '\'': case ')': case ']':
            return QUOTE;
        case '$':
            return MONEY;
        case '-': case '(': case '[': case '%':
            return OTHER;
        default:
            return c < 32 || c == 127 ? INVISIBLE : SYMBOL;
        }
    }
    if (c < 0x250) {
        if (c == 0xA0 || c == 0x85)
            return SPACE;
        if (c < 0xA0 || c == 0xAD)
            return INVISIBLE;
        if (c >= 0xA2 && c <= 0xA5)
            return MONEY;
        if (c < 0xC0)
            return c == 0xBB ? QUOTE : c == 0xAA || c == 0xB5 || c == 0xBA ? LETTER : SYMBOL;
        return c < 0xDF && c != 0xD7 ? UPPER : c >= 0x100 && c < 0x180 && !(c & 1) ? UPPER : LETTER;
    }
    if (c < 0x2000) {
        if ((c >= 0x391 && c <= 0x3A9) || (c >= 0x400 && c <= 0x42F) || c == 0x386 || (c >= 0x388 && c <= 0x38F)
            || (c >= 0x531 && c <= 0x556) || (c >= 0x460 && c < 0x530 && !(c & 1)) || (c >= 0x10A0 && c <= 0x10C5))
            return UPPER;
        if (c < 0x600)
            return c == 0x589 ? STOP : LETTER;
        if (c == 0x61F || c == 0x6D4 || c == 0x964 || c == 0x965 || c == 0x1362 || c == 0x1367 || c == 0x1368)
            return STOP;
        if (c == 0x60C || c == 0x61B || c == 0x104A || c == 0x1363 || c == 0x1364)
            return COMMA;
        if (c == 0xF0D || c == 0xF0E || c == 0x104B || c == 0x17D4 || c == 0x17D5)
            return NARROW_STOP;
        if (is_digit(c))
            return DIGIT;
        if (c == 0xE3F)
            return MONEY;
        if (c >= 0x1100 && c < 0x1200)
            return SYLLABLE;
        if ((c >= 0xE00 && c < 0xF00) || (c >= 0x1000 && c < 0x10A0) || (c >= 0x1780 && c < 0x1800))
            return NO_SPACES;
        return c == 0x1680 ? SPACE : LETTER;
    }
    if (c < 0x2E80) {
        if (c <= 0x200A || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F)
            return SPACE;
        if (c <= 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F))
            return INVISIBLE;
        if (c == 0x2026 || c == 0x203D)
            return STOP;
        if ((c >= 0x2018 && c <= 0x201F) || c == 0x203A)
            return QUOTE;
        if (c >= 0x20A0 && c <= 0x20CF)
            return MONEY;
        if (c >= 0x2010 && c <= 0x2015)
            return OTHER;
        return c >= 0x2C00 ? LETTER : SYMBOL;
    }
    if (c == 0x3000)
        return SPACE;
    if (c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0xFF0E || c == 0xFF61)
        return WIDE_STOP;
    if (c == 0x3001 || c == 0xFF0C || c == 0xFF1B || c == 0xFF64)
        return COMMA;
    if (c < 0x3040)
        return c < 0x3005 ? OTHER : QUOTE;
    if (c < 0xA000)
        return IDEOGRAPH;
    if (c >= 0xAC00 && c <= 0xD7AF)
        return SYLLABLE;
    if (c > 0xFF00 && c < 0xFF66) {
        if (c >= 0xFF10 && c <= 0xFF19)
            return DIGIT;
        if (c >= 0xFF21 && c <= 0xFF3A)
            return UPPER;
        if (c >= 0xFF41 && c <= 0xFF5A)
            return LOWER;
        return c == 0xFF1A ? COLON : c == 0xFF04 ? MONEY : c == 0xFF09 || c == 0xFF3D || c == 0xFF63 ? QUOTE
               : c == 0xFF08 || c == 0xFF0D || c == 0xFF3B || c == 0xFF05 || c == 0xFF62 ? OTHER : SYMBOL;
    }
    if (c == 0xFFE5 || c == 0xFFE1 || c == 0xFDFC)
        return MONEY;
    if ((c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9D) || (c >= 0x20000 && c < 0x40000))
        return IDEOGRAPH;
    if (c == 0xFEFF || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xE000 && c < 0xF900))
        return INVISIBLE;
    return c >= 0x1F000 && c < 0x1FB00 ? SYMBOL : LETTER;
}

#endif
