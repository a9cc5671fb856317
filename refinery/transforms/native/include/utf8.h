/* Whether bytes are UTF-8 as Python decodes it: no surrogates, nothing overlong (RFC 3629; Unicode, table 3-7). */

#ifndef REFINERY_UTF8_H
#define REFINERY_UTF8_H

#include <stdint.h>
#include <string.h>

/* The number of characters, or -1 where the bytes are not UTF-8. Linear; eight bytes of ASCII at a time. */
static int64_t utf8_characters(const uint8_t *at, const uint8_t *end)
{
    int64_t count = 0;
    while (at < end) {
        uint64_t eight;
        if (end - at >= 8 && (memcpy(&eight, at, 8), !(eight & 0x8080808080808080u))) {
            at += 8, count += 8;
            continue;
        }
        const uint8_t first = *at;
        int more = 0;
        uint8_t low = 0x80, high = 0xBF; /* of the second byte */
        if (first >= 0xC2 && first <= 0xDF)
            more = 1;
        else if (first >= 0xE0 && first <= 0xEF)
            more = 2, low = first == 0xE0 ? 0xA0 : low, high = first == 0xED ? 0x9F : high;
        else if (first >= 0xF0 && first <= 0xF4)
            more = 3, low = first == 0xF0 ? 0x90 : low, high = first == 0xF4 ? 0x8F : high;
        else if (first >= 0x80)
            return -1;
        if (end - at <= more || (more && (at[1] < low || at[1] > high)))
            return -1;
        for (int i = 2; i <= more; i++)
            if ((at[i] & 0xC0) != 0x80)
                return -1;
        at += more + 1, count++;
    }
    return count;
}

#endif
