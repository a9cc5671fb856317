/* The HTML standard's tokenizer, as far as it decides where a tag, a comment or a raw text ends. Included by htmlscan.c
 * alone, after htmlscan_names.h. */
static inline int blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

/* Past the '>' of the tag whose name ends at p, or NULL when the input ends first (such a tag is no tag). */
static const uint8_t *skip_attributes(const uint8_t *p, const uint8_t *end, Py_ssize_t *attributes, int *closed)
{
    *attributes = 0;
    *closed = 0;
    while (p < end) {
        if (*p == '>')
            return p + 1;
        if (blank(*p) || *p == '/') {
            *closed = *p == '/' && p + 1 < end && p[1] == '>';
            p++;
            continue;
        }
        ++*attributes;
        p++; /* the first character belongs to the name, even '=' */
        while (p < end && !blank(*p) && *p != '/' && *p != '>' && *p != '=')
            p++;
        while (p < end && blank(*p))
            p++;
        if (p == end || *p != '=')
            continue;
        p++;
        while (p < end && blank(*p))
            p++;
        if (p < end && (*p == '"' || *p == '\'')) {
            p = memchr(p + 1, *p, (size_t)(end - p - 1));
            if (p == NULL)
                return NULL;
            p++;
        } else {
            while (p < end && !blank(*p) && *p != '>')
                p++;
        }
    }
    return NULL;
}

/* Past the text of a raw element: the "</name" that ends it, or the end. */
static const uint8_t *skip_raw(const uint8_t *p, const uint8_t *end, const uint8_t *name, size_t size)
{
    while ((p = memchr(p, '<', (size_t)(end - p))) != NULL) {
        if ((size_t)(end - p) < size + 3)
            return end;
        size_t i = 0;
        if (p[1] == '/')
            while (i < size && lower(p[2 + i]) == lower(name[i]))
                i++;
        if (i == size && (blank(p[2 + size]) || p[2 + size] == '/' || p[2 + size] == '>'))
            return p;
        p++;
    }
    return end;
}

/* Past "<!...", "<?..." or "</" before a non-letter: a comment, or what counts as one up to the next '>'. */
static const uint8_t *skip_comment(const uint8_t *p, const uint8_t *end)
{
    if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
        p += 4;
        if (p < end && *p == '>')
            return p + 1;
        if (end - p >= 2 && p[0] == '-' && p[1] == '>')
            return p + 2;
        while ((p = memchr(p, '-', (size_t)(end - p))) != NULL) {
            if (end - p >= 3 && p[1] == '-' && p[2] == '>')
                return p + 3;
            if (end - p >= 4 && p[1] == '-' && p[2] == '!' && p[3] == '>')
                return p + 4;
            p++;
        }
        return end;
    }
    p = memchr(p, '>', (size_t)(end - p));
    return p == NULL ? end : p + 1;
}
