/* Remains of page builders: short codes that no plug-in has replaced, as [vc_row css=".a"] and [/vc_row].
 *
 * WordPress's syntax (Shortcode API): [name attribute="value" …], [/name], [name /]. What has an attribute in quotes is
 * one, and so are the end of one that was open and the names of the large builders. "[1]", "[sic]", "[TODO]", "[a=1]",
 * "[quote="x"]" are none. In <pre> and <code> all stays. Cost: MOST_SHORTCODE bytes for each bracket at most. */

#ifndef REFINERY_HTMLBLOCKS_SHORTCODES_H
#define REFINERY_HTMLBLOCKS_SHORTCODES_H

#include "htmlblocks_stack.h"

enum { MOST_SHORTCODE = 4096, LONGEST_SHORTCODE = 48 };

static const char *const BUILDERS[] = {
    "vc_", "wpb_", "et_pb_", "fusion_", "av_", "mk_", "nectar_", "tatsu_", "kc_", "bt_bb_", "su_", "ult_", "dfd_", "trx_",
    "qode_", "eltdf_", "mkdf_", "edgtf_", "gdlr_", "woodmart_", "porto_", "themify_", "siteorigin_", "rev_slider",
    "elementor-template", "fl_builder", "one_half", "one_third", "two_third", "one_fourth", "three_fourth",
};

static inline int is_small(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* A quotation mark at `at`, as it is or as texts are typeset: curly, prime, or a reference to one. */
static int is_quotation_mark(const uint8_t *at, const uint8_t *end)
{
    static const char *const marks[] = {"\"", "'", "\xE2\x80\x98", "\xE2\x80\x99", "\xE2\x80\x9C", "\xE2\x80\x9D",
                                        "\xE2\x80\xB2", "\xE2\x80\xB3", "\xC2\xAB", "\xC2\xBB", "&quot;", "&#34;", "&#39;",
                                        "&#039;", "&#8216;", "&#8217;", "&#8220;", "&#8221;", "&#8242;", "&#8243;",
                                        "&ldquo;", "&rdquo;", "&lsquo;", "&rsquo;", "&Prime;", "&prime;"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if ((size_t)(end - at) >= strlen(marks[m]) && !memcmp(at, marks[m], strlen(marks[m])))
            return 1;
    return 0;
}

static int is_builder(const uint8_t *name, size_t size)
{
    for (size_t b = 0; b < sizeof BUILDERS / sizeof *BUILDERS; b++)
        if (size >= strlen(BUILDERS[b]) && !memcmp(name, BUILDERS[b], strlen(BUILDERS[b])))
            return 1;
    return 0;
}

/* Behind the short code that begins with the bracket at `at`, NULL for any other bracket. */
static const uint8_t *shortcode_end(State *s, const uint8_t *at, const uint8_t *end)
{
    if (end - at > MOST_SHORTCODE)
        end = at + MOST_SHORTCODE;
    const int close = end - at > 1 && at[1] == '/';
    const uint8_t *name = at + 1 + close, *stop = name;
    uint32_t hash = 2166136261u;
    for (; stop < end && stop - name < LONGEST_SHORTCODE && (is_small(*stop) || *stop == '_' || *stop == '-'); stop++)
        hash = (hash ^ *stop) * 16777619u;
    const size_t size = (size_t)(stop - name);
    if (size < 2 || stop == end || *name < 'a' || stop[-1] == '-')
        return NULL;
    const int known = is_builder(name, size);
    if (close || *stop == ']' || *stop == '/') {
        int good = known;
        for (int i = 0; close && i < MOST_SHORTCODES; i++)
            good |= s->shortcodes[i] == hash;
        stop += *stop == '/';
        return good && stop < end && *stop == ']' ? stop + 1 : NULL;
    }
    if (*stop != ' ' && *stop != '\n' && *stop != '\t' && *stop != '\r')
        return NULL;
    const uint8_t *behind = memchr(stop, ']', (size_t)(end - stop));
    if (!behind || memchr(stop, '[', (size_t)(behind - stop)))
        return NULL;
    int good = known;
    for (const uint8_t *sign = stop; !good && (sign = memchr(sign, '=', (size_t)(behind - sign))); sign++) {
        const uint8_t *attribute = sign;
        while (attribute > stop && (is_small(attribute[-1]) || attribute[-1] == '_' || attribute[-1] == '-'
                                    || (attribute[-1] >= 'A' && attribute[-1] <= 'Z')))
            attribute--;
        good = attribute < sign && attribute > stop && is_quotation_mark(sign + 1, behind);
        if (!good)
            break;
    }
    if (!good)
        return NULL;
    s->shortcodes[s->shortcode_count++ % MOST_SHORTCODES] = hash;
    return behind + 1;
}

#endif
