/* The elements that the HTML standard treats in some special way, by name. Included by htmlscan.c alone.
 *
 * A name is a number from here on. Two names that shared one would let a page close in this scanner what stays open in
 * the parser, so names of up to eight bytes are exact and longer ones are hashed with a random key: chance alone makes
 * two equal, once in 2^63. The table never grows: a look-up passes over most_probes slots at most. */

#include "keyed_hash.h"

enum {
    VOID = 1,          /* no content, never on the stack */
    SPECIAL = 2,       /* stops the end tag of an ordinary element */
    SCOPE = 4,         /* ends the search for an element "in scope" */
    BLOCK = 8,         /* end tag closes the element in scope, through whatever is above */
    CLOSES_P = 16,     /* start tag closes an open p */
    FORMAT = 32,       /* opened again after the block it was left open in */
    MARKER = 64,       /* ... but not beyond this element */
    RAW = 128,         /* content is text up to its own end tag */
    TABLE = 256,       /* end tag looks through everything but tables and templates */
    HEADING = 512,
    BREAKOUT = 1024,   /* start tag ends foreign content */
    SVG_INTEGRATION = 2048, /* foreign element with HTML inside: title, too */
    FOREIGN = 4096,    /* svg, math */
    RAW_IN_SELECT = 8192,
    MATH_INTEGRATION = 65536,
    SILENT = 16384,    /* html, head, body: there is one of each anyway */
    QUIET = 32768,     /* start tag does not open formatting elements again (nor does any CLOSES_P or TABLE) */
};

typedef struct {
    const char *name;
    uint32_t flags;
} Known;

#define B (SPECIAL | BLOCK | CLOSES_P)
static const Known KNOWN[] = {
    {"address", B}, {"article", B}, {"aside", B}, {"blockquote", B | BREAKOUT}, {"center", B | BREAKOUT},
    {"details", B}, {"dialog", BLOCK | CLOSES_P}, {"dir", B}, {"div", B | BREAKOUT}, {"dl", B | BREAKOUT},
    {"fieldset", B}, {"figcaption", B}, {"figure", B}, {"footer", B}, {"header", B}, {"hgroup", B}, {"main", B},
    {"menu", B | BREAKOUT}, {"nav", B}, {"ol", B | BREAKOUT}, {"search", B}, {"section", B}, {"summary", B},
    {"ul", B | BREAKOUT}, {"pre", B | BREAKOUT}, {"listing", B | BREAKOUT}, {"form", SPECIAL | CLOSES_P},
    {"p", B | BREAKOUT}, {"li", B | BREAKOUT}, {"dd", B | BREAKOUT}, {"dt", B | BREAKOUT}, {"button", SPECIAL | BLOCK},
    {"h1", B | HEADING | BREAKOUT}, {"h2", B | HEADING | BREAKOUT}, {"h3", B | HEADING | BREAKOUT},
    {"h4", B | HEADING | BREAKOUT}, {"h5", B | HEADING | BREAKOUT}, {"h6", B | HEADING | BREAKOUT},
    {"applet", SPECIAL | SCOPE | BLOCK | MARKER}, {"marquee", SPECIAL | SCOPE | BLOCK | MARKER},
    {"object", SPECIAL | SCOPE | BLOCK | MARKER}, {"caption", SPECIAL | SCOPE | TABLE | MARKER},
    {"template", SPECIAL | QUIET | SCOPE | MARKER}, {"table", SPECIAL | SCOPE | TABLE | BREAKOUT},
    {"tbody", SPECIAL | TABLE}, {"thead", SPECIAL | TABLE}, {"tfoot", SPECIAL | TABLE}, {"tr", SPECIAL | TABLE},
    {"td", SPECIAL | SCOPE | TABLE | MARKER}, {"th", SPECIAL | SCOPE | TABLE | MARKER},
    {"select", SPECIAL | SCOPE | BLOCK}, {"colgroup", SPECIAL | TABLE}, {"noscript", SPECIAL},
    {"html", SILENT}, {"head", SILENT | BREAKOUT}, {"body", SILENT | BREAKOUT}, {"frameset", SPECIAL | QUIET},
    {"area", VOID}, {"base", VOID | QUIET}, {"basefont", VOID | QUIET}, {"bgsound", VOID | QUIET},
    {"br", VOID | BREAKOUT}, {"col", VOID | QUIET},
    {"embed", VOID | BREAKOUT}, {"frame", VOID | QUIET}, {"hr", VOID | CLOSES_P | BREAKOUT}, {"img", VOID | BREAKOUT},
    {"input", VOID}, {"keygen", VOID}, {"link", VOID | QUIET}, {"meta", VOID | QUIET | BREAKOUT},
    {"param", VOID | QUIET}, {"source", VOID | QUIET},
    {"track", VOID | QUIET}, {"wbr", VOID}, {"image", VOID},
    {"a", FORMAT}, {"b", FORMAT | BREAKOUT}, {"big", FORMAT | BREAKOUT}, {"code", FORMAT | BREAKOUT},
    {"em", FORMAT | BREAKOUT}, {"font", FORMAT}, {"i", FORMAT | BREAKOUT}, {"nobr", FORMAT | BREAKOUT},
    {"s", FORMAT | BREAKOUT}, {"small", FORMAT | BREAKOUT}, {"strike", FORMAT | BREAKOUT},
    {"strong", FORMAT | BREAKOUT}, {"tt", FORMAT | BREAKOUT}, {"u", FORMAT | BREAKOUT},
    {"script", SPECIAL | QUIET | RAW | RAW_IN_SELECT}, {"textarea", SPECIAL | QUIET | RAW | RAW_IN_SELECT},
    {"style", SPECIAL | QUIET | RAW},
    {"title", SPECIAL | QUIET | RAW}, {"xmp", SPECIAL | RAW | CLOSES_P}, {"iframe", SPECIAL | QUIET | RAW},
    {"noembed", SPECIAL | QUIET | RAW},
    {"noframes", SPECIAL | QUIET | RAW}, {"plaintext", SPECIAL | RAW | CLOSES_P},
    {"svg", FOREIGN}, {"math", FOREIGN}, {"foreignobject", SVG_INTEGRATION}, {"desc", SVG_INTEGRATION},
    {"mi", MATH_INTEGRATION},
    {"mo", MATH_INTEGRATION}, {"mn", MATH_INTEGRATION}, {"ms", MATH_INTEGRATION}, {"mtext", MATH_INTEGRATION},
    {"span", BREAKOUT}, {"sub", BREAKOUT}, {"sup", BREAKOUT}, {"var", BREAKOUT},
    {"ruby", BREAKOUT}, {"rp", QUIET}, {"rt", QUIET},
};
#undef B

#define SLOTS 512 /* a power of two, several times the number of names */
static uint64_t slot_keys[SLOTS];
static uint32_t slot_flags[SLOTS];
static size_t most_probes; /* slots that any look-up passes over, at most */
static HashKey name_key;   /* drawn when the module is loaded */

static inline uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* A name as a number: its lower-case bytes up to eight (the first is a letter: the top bit is 0), else a hash. */
static uint64_t key_of(const uint8_t *name, size_t size)
{
    uint64_t key = 0;
    if (size > 8)
        return siphash(&name_key, name, size, 1) | (uint64_t)1 << 63;
    for (size_t i = 0; i < size; i++)
        key = key << 8 | lower(name[i]);
    return key;
}

static size_t slot_of(uint64_t key)
{
    size_t slot = (size_t)(slot_hash(&name_key, key) % SLOTS);
    while (slot_keys[slot] != 0 && slot_keys[slot] != key)
        slot = (slot + 1) & (SLOTS - 1);
    return slot;
}

/* The longest run of slots that are taken. */
static size_t longest_run(void)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < 2 * SLOTS; i++) { /* twice round, for a run over the end */
        run = slot_keys[i % SLOTS] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}
