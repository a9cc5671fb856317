/* The characters of scripts that are written without spaces: the one table, for all kernels and for Python.
 *
 * The scripts: those whose letters have the line-breaking class SA (UAX #14: South East Asian text that only a
 * dictionary can divide): Ahom, Khmer, Lao, Myanmar, New Tai Lue, Tai Le, Tai Tham, Tai Viet, Thai; and Han, Hiragana
 * and Katakana, to which UAX #29 gives no word boundaries of their own either. The characters: letters, marks and
 * numbers (categories L, M, N) whose property Script (Unicode 17, Scripts.txt) is one of these, and letters and marks
 * of the scripts Common and Inherited whose Script_Extensions (ScriptExtensions.txt) names these alone. Unassigned code
 * points between them are left in; planes 2 and 3 are Unicode's room for Han. tests/native/test_scripts.py holds the
 * table against the properties, code point by code point. */

#ifndef REFINERY_SCRIPTS_H
#define REFINERY_SCRIPTS_H

#include <stddef.h>
#include <stdint.h>

static const uint32_t UNSPACED[][2] = {
    {0xE01, 0xE3A}, {0xE40, 0xE4E}, {0xE50, 0xE59},                      /* Thai */
    {0xE81, 0xEDF},                                                      /* Lao */
    {0x1000, 0x1049}, {0x1050, 0x109D},                                  /* Myanmar */
    {0x1780, 0x17D3}, {0x17D7, 0x17D7}, {0x17DC, 0x17F9},                /* Khmer */
    {0x1950, 0x19DA},                                                    /* Tai Le, New Tai Lue */
    {0x1A20, 0x1A99}, {0x1AA7, 0x1AA7},                                  /* Tai Tham */
    {0x3005, 0x3007}, {0x3021, 0x3029}, {0x3031, 0x3035}, {0x3038, 0x303C}, /* Han; repeat marks of kana */
    {0x3041, 0x309A}, {0x309D, 0x309F},                                  /* Hiragana */
    {0x30A1, 0x30FA}, {0x30FC, 0x30FF}, {0x31F0, 0x31FF},                /* Katakana */
    {0x3400, 0x4DBF}, {0x4E00, 0x9FFF},                                  /* Han */
    {0xA9E0, 0xA9FE}, {0xAA60, 0xAA76},                                  /* Myanmar */
    {0xAA7A, 0xAAC2}, {0xAADB, 0xAADD},                                  /* Myanmar, Tai Viet */
    {0xF900, 0xFAD9},                                                    /* Han */
    {0xFF66, 0xFF9F},                                                    /* half-width Katakana */
    {0x116D0, 0x116E3},                                                  /* Myanmar */
    {0x11700, 0x1173B}, {0x11740, 0x11746},                              /* Ahom */
    {0x16FE3, 0x16FE3}, {0x16FF0, 0x16FF6},                              /* Han */
    {0x1AFF0, 0x1B132}, {0x1B150, 0x1B168},                              /* Katakana, Hiragana */
    {0x20000, 0x3FFFF},                                                  /* Han */
};
#define UNSPACED_RANGES (sizeof UNSPACED / sizeof *UNSPACED)

#endif
