/* The stack of open elements and the list of active formatting elements of the HTML standard, in one. Included by
 * htmlscan.c alone, after htmlscan_tokens.h. */
static uint64_t K_A, K_P, K_LI, K_DD, K_DT, K_TD, K_TH, K_TR, K_TABLE, K_TEMPLATE, K_FORM, K_BUTTON, K_OPTION,
    K_OPTGROUP, K_RT, K_RP, K_SELECT, K_PLAINTEXT, K_DIV, K_ADDRESS, K_OL, K_UL, K_TITLE, K_BR, K_RUBY, K_FRAMESET,
    K_FONT, K_MATH, K_HTML, K_ANNOTATION_XML;

static uint64_t named(const char *name)
{
    return key_of((const uint8_t *)name, strlen(name));
}

static void fill_tables(void)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        size_t slot = slot_of(named(KNOWN[i].name));
        slot_keys[slot] = named(KNOWN[i].name);
        slot_flags[slot] = KNOWN[i].flags;
    }
    most_probes = longest_run();
    K_A = named("a"), K_P = named("p"), K_LI = named("li"), K_DD = named("dd");
    K_DT = named("dt"), K_TD = named("td"), K_TH = named("th"), K_TR = named("tr"), K_TABLE = named("table");
    K_TEMPLATE = named("template"), K_FORM = named("form"), K_BUTTON = named("button"), K_OPTION = named("option");
    K_OPTGROUP = named("optgroup"), K_RT = named("rt"), K_RP = named("rp"), K_SELECT = named("select");
    K_PLAINTEXT = named("plaintext"), K_DIV = named("div"), K_ADDRESS = named("address"), K_OL = named("ol");
    K_UL = named("ul"), K_TITLE = named("title"), K_BR = named("br"), K_RUBY = named("ruby");
    K_FRAMESET = named("frameset"), K_FONT = named("font");
    K_MATH = named("math"), K_HTML = named("html"), K_ANNOTATION_XML = named("annotation-xml");
}

typedef struct {
    uint64_t key, attributes; /* name; keyed hash of the raw attributes of a formatting element */
    uint32_t flags;
    uint8_t listed;  /* in the standard's list of active formatting elements */
    uint8_t waiting; /* closed with its block, to be opened again by the next text or inline element */
    uint8_t foreign; /* 1: svg or math and below, 2: HTML inside such */
} Open;

/* Extractors look at the text below each element, so text costs its depth. An element costs about 100 bytes of text
 * (resiliparse 2.0.1: 1.4 ns per byte and level, 150 ns per element and level). */
#define STEPS_PER_ELEMENT 100.0

typedef struct {
    Open *stack, *spare; /* both for max_depth + 2 entries */
    Py_ssize_t size, deepest, elements, most_attributes;
    double steps; /* sum over elements and bytes of text of the depth they are at, see STEPS_PER_ELEMENT */
    Py_ssize_t foreign, selects, templates; /* how many of them are open (foreign: also framesets ever seen) */
    Py_ssize_t waiting;                     /* how many entries are */
    int wary;                               /* HTML or not is unsure: nothing is taken for closed without an end tag */
    Py_ssize_t framesets;                   /* ever seen */
} State;

static void count(State *s, const Open *open, int by)
{
    s->foreign += open->foreign == 1 ? by : 0;
    s->selects += open->key == K_SELECT && !open->foreign ? by : 0;
    s->waiting += open->waiting ? by : 0;
    s->templates += open->key == K_TEMPLATE && !open->foreign ? by : 0;
}

static int is_marker(const Open *open)
{
    return (open->flags & MARKER) && !open->foreign;
}

/* Close entry `from` and all above. Formatting elements above it stay, waiting; those above a marker are forgotten. */
static void pop_to(State *s, Py_ssize_t from)
{
    Py_ssize_t marker = s->size, kept = from;
    for (Py_ssize_t i = from; i < s->size; i++) {
        count(s, &s->stack[i], -1);
        if (marker == s->size && is_marker(&s->stack[i]))
            marker = i;
    }
    for (Py_ssize_t i = from; i < marker; i++)
        if (s->stack[i].listed) {
            s->stack[kept] = s->stack[i];
            s->stack[kept].foreign = 0;
            s->stack[kept].waiting = 1;
            count(s, &s->stack[kept++], 1);
        }
    s->size = kept;
}

/* What text and inline elements do first: open the waiting formatting elements again, back to the last marker. This is
 * how a few unclosed elements and many paragraphs make a tree of quadratic size. */
static void reopen(State *s)
{
    Py_ssize_t from = s->size, kept, moved = 0;
    if (s->waiting == 0)
        return;
    while (from > 0 && !is_marker(&s->stack[from - 1]))
        from--;
    kept = from;
    for (Py_ssize_t i = from; i < s->size; i++)
        if (s->stack[i].waiting)
            s->spare[moved++] = s->stack[i];
        else
            s->stack[kept++] = s->stack[i];
    for (Py_ssize_t i = 0; i < moved; i++) {
        s->stack[kept] = s->spare[i];
        s->stack[kept++].waiting = 0;
        s->elements++;
        s->steps += (double)kept * STEPS_PER_ELEMENT;
    }
    s->waiting -= moved;
}

/* Whether the characters from p on are inserted as text: blanks between the parts of a table are not. */
static int reopens(const State *s, const uint8_t *p, const uint8_t *end)
{
    Py_ssize_t top = s->size - 1;
    while (top >= 0 && s->stack[top].waiting)
        top--;
    if (top < 0 || !(s->stack[top].flags & TABLE) || is_marker(&s->stack[top]))
        return p < end;
    while (p < end && blank(*p))
        p++;
    return p < end;
}

static void take_out(State *s, Py_ssize_t at)
{
    count(s, &s->stack[at], -1);
    memmove(s->stack + at, s->stack + at + 1, (size_t)(s->size - at - 1) * sizeof(Open));
    s->size--;
}

/* The highest open element named `key`, no further down than the first with one of `stops`; -1 when there is none. */
static Py_ssize_t find(const State *s, uint64_t key, uint32_t stops)
{
    for (Py_ssize_t i = s->size - 1; i >= 0; i--) {
        if (s->stack[i].key == key && !s->stack[i].foreign)
            return i;
        if ((s->stack[i].flags & stops) || s->stack[i].foreign == 2)
            return -1;
    }
    return -1;
}

static Py_ssize_t find_in_table(const State *s, uint64_t key, uint64_t other)
{
    for (Py_ssize_t i = s->size - 1; i >= 0; i--) {
        if ((s->stack[i].key == key || s->stack[i].key == other) && !s->stack[i].foreign)
            return i;
        if (s->stack[i].key == K_TABLE || s->stack[i].key == K_TEMPLATE || s->stack[i].foreign)
            return -1;
        if (s->stack[i].key == K_SELECT && key != K_TABLE) /* parsers differ: better too deep than too shallow */
            return -1;
    }
    return -1;
}

static int open_is(const State *s, uint64_t key, uint64_t other) /* the innermost open element; size > 0 */
{
    const Open *top = &s->stack[s->size - 1];
    return top->key == key || top->key == other;
}

static void close_found(State *s, Py_ssize_t at)
{
    if (at >= 0)
        pop_to(s, at);
}
