/* The pass over the text, and the n-gram counts over the word ids that it leaves behind. */

#include "heuristics_tables.h"

#include "heuristics_characters.h"

enum { /* flags */
    WORDS = 1, LINES = 2, PARAGRAPHS = 4, NEED_TERMINAL = 8, NO_JAVASCRIPT = 16, NO_POLICY = 32, C4_ENDS = 64,
    UNSPLIT = 128, LONE_NGRAMS = 256, ALL_FLAGS = 511
};
enum { WINDOW_WORDS = 1000, MAX_NGRAM = 10 };

#define SPACED 0x80000000u /* in an id: whitespace stands before the word. In a count: the walk has met the n-gram */
/* clang-format off */
#define FIELDS(X) \
    X(words) X(alnum_words) X(alnum_word_chars) X(alphabetic_words) X(letters) X(spaceless_letters) X(stop_words) \
    X(window_unique_words) X(punctuation) X(hashes) X(ellipses) X(curly_brackets) X(lorem_ipsum) \
    X(lines) X(bullet_lines) X(ellipsis_lines) X(code_lines) X(duplicate_lines) X(duplicate_line_chars) \
    X(paragraphs) X(duplicate_paragraphs) X(duplicate_paragraph_chars) \
    X(top_2_gram_chars) X(top_3_gram_chars) X(top_4_gram_chars) X(duplicate_5_gram_chars) X(duplicate_6_gram_chars) \
    X(duplicate_7_gram_chars) X(duplicate_8_gram_chars) X(duplicate_9_gram_chars) X(duplicate_10_gram_chars) \
    X(kept_lines) X(kept_words) X(kept_sentences) X(kept_line_breaks) X(kept_line_chars) X(kept_terminal_lines) \
    X(kept_short_lines) X(kept_duplicate_line_chars)
/* clang-format on */

#define DECLARE(name) uint64_t name;
typedef struct { FIELDS(DECLARE) } Counts;
#define N_COUNTS (sizeof(Counts) / sizeof(uint64_t))

typedef struct { uint32_t count, chars, window; } Word;
typedef struct { uint32_t start, end, breaks; } Segment; /* text[start:end] of the kept text, after so many newlines */
typedef struct {
    Table words, lines, paragraphs, ngrams;
    Vector info, ids, positions, ngram_ids, counts, segments;
    size_t ngram_steps; /* of the table of n-grams, which is emptied for every n */
} Arena;
typedef struct { size_t max_ngram, short_line_chars, min_line_words, max_word_chars; unsigned flags; } Options;

/* Where the scan stands: in the line, in the paragraph, and in the text that is left once lines are removed. */
typedef struct {
    size_t line, last_end;                                 /* start of the line, end of its last word */
    uint64_t line_words, line_chars, line_code, sentences; /* characters: without whitespace */
    unsigned marks, ends_sentence, last_class;
    uint64_t paragraph_hash, paragraph_lines, paragraph_chars;
    uint64_t breaks, break_chars; /* line ends since the last kept line */
    unsigned removed, blank;      /* a line was removed, a blank one stood, since the last kept line */
    Segment open;
    size_t segments, kept_until, out_chars, out_break_chars;
} State;

static int end_paragraph(State *s, Arena *a, Counts *k)
{
    if (!s->paragraph_lines)
        return 0;
    size_t used = a->paragraphs.used;
    if (table_insert(&a->paragraphs, s->paragraph_hash) < 0)
        return -1;
    k->paragraphs++;
    if (a->paragraphs.used == used) {
        k->duplicate_paragraphs++;
        k->duplicate_paragraph_chars += s->paragraph_chars + s->paragraph_lines - 1;
    }
    s->paragraph_hash = HASH_SEED;
    s->paragraph_lines = s->paragraph_chars = 0;
    return 0;
}

static int push_segment(State *s, Arena *a)
{
    if (reserve(&a->segments, s->segments + 1, sizeof(Segment)) < 0)
        return -1;
    ((Segment *)a->segments.items)[s->segments++] = s->open;
    s->out_chars += s->open.end - s->open.start + s->open.breaks;
    return 0;
}

static int keep_line(State *s, size_t end, Arena *a, Counts *k)
{
    if (s->removed) { /* what is removed leaves one line break behind, or an empty line if one stood there */
        uint32_t breaks = 0;
        if (k->kept_lines) {
            if (push_segment(s, a) < 0)
                return -1;
            breaks = s->blank ? 2 : 1;
        }
        s->open = (Segment){(uint32_t)s->line, 0, breaks};
        k->kept_line_breaks += breaks;
        s->out_break_chars += breaks;
    } else {
        k->kept_line_breaks += s->breaks;
        s->out_break_chars += s->break_chars;
    }
    s->open.end = (uint32_t)end;
    s->breaks = s->break_chars = s->removed = s->blank = 0;
    k->kept_lines++;
    k->kept_words += s->line_words;
    k->kept_sentences += s->sentences + 1;
    return 0;
}

INLINE int end_line(State *s, size_t end, uint64_t hash, const void *data, int kind, const Options *o, Arena *a,
                    Counts *k)
{
    if (!s->line_words) {
        s->blank = 1;
        return o->flags & PARAGRAPHS ? end_paragraph(s, a, k) : 0;
    }
    size_t chars = end - s->line, tail = s->last_end;
    uint32_t last = PyUnicode_READ(kind, data, tail - 1);
    int dots = last == '.' && tail - s->line >= 3 && PyUnicode_READ(kind, data, tail - 2) == '.'
               && PyUnicode_READ(kind, data, tail - 3) == '.';
    int terminal = (s->last_class & TERMINAL) != 0, duplicate = 0;
    k->lines++;
    k->bullet_lines += (s->marks & IS_BULLET) != 0;
    k->ellipsis_lines += dots || last == 0x2026;
    k->code_lines += last == ';' || last == '{' || last == '}' || 10 * s->line_code >= s->line_chars;
    if (o->flags & LINES) {
        size_t used = a->lines.used;
        if (table_insert(&a->lines, hash) < 0)
            return -1;
        duplicate = a->lines.used == used;
        k->duplicate_lines += duplicate;
        k->duplicate_line_chars += duplicate ? chars : 0;
    }
    s->paragraph_hash = (s->paragraph_hash ^ mix(hash)) * WORD_PRIME;
    s->paragraph_lines++;
    s->paragraph_chars += chars;
    int quoted = last == '"' || last == '\'';
    int ends = o->flags & C4_ENDS ? quoted || last == '.' || last == '?' || last == '!'
                                  : quoted || terminal || last == 0x201D || last == 0x2019;
    /* In the order of C4's released code: a line that a rule has removed counts for none of the rules behind it. */
    int removed = (s->marks & LONG_WORD) || s->line_words < o->min_line_words
                  || ((o->flags & NEED_TERMINAL) && (dots || !ends));
    k->lorem_ipsum += !removed && (s->marks & LOREM_IPSUM);
    removed = removed || ((o->flags & NO_JAVASCRIPT) && (s->marks & JAVASCRIPT));
    k->curly_brackets += !removed && (s->marks & BRACKET);
    removed = removed || ((o->flags & NO_POLICY) && (s->marks & POLICY));
    if (removed) {
        s->removed = 1;
        return 0;
    }
    k->kept_terminal_lines += terminal;
    k->kept_short_lines += chars <= o->short_line_chars;
    k->kept_duplicate_line_chars += duplicate ? chars : 0; /* all copies of a line share its fate */
    return keep_line(s, end, a, k);
}

INLINE int add_word(uint64_t hash, size_t chars, unsigned spaced, Arena *a, Counts *k)
{
    size_t used = a->words.used;
    int64_t id = table_insert(&a->words, hash);
    if (id < 0 || reserve(&a->ids, k->words + 1, sizeof(uint32_t)) < 0)
        return -1;
    uint32_t window = (uint32_t)(k->words / WINDOW_WORDS) + 1;
    if ((size_t)id == used) {
        if (reserve(&a->info, used + 1, sizeof(Word)) < 0)
            return -1;
        ((Word *)a->info.items)[id] = (Word){0, (uint32_t)chars, 0};
    }
    Word *word = (Word *)a->info.items + id;
    word->count++;
    k->window_unique_words += word->window != window;
    word->window = window;
    ((uint32_t *)a->ids.items)[k->words] = (uint32_t)id | (spaced ? SPACED : 0);
    return 0;
}

INLINE int scan(const void *data, const int kind, size_t n, const Options *o, Arena *a, Counts *out, State *s)
{
    Counts k = {0};
    uint64_t line_hash = HASH_SEED, letters = 0, punctuation = 0;
    size_t i = 0, dots = 0, dots_end = 0;
    unsigned spaced = 0;
    const unsigned spaceless = o->flags & UNSPLIT ? 0 : SPACELESS;
    while (i < n) {
        uint32_t c = PyUnicode_READ(kind, data, i);
        unsigned class = class_of(c);
        if (class & SPACE) {
            spaced = 1;
            if (!(class & BREAK)) {
                line_hash = (line_hash ^ c) * LINE_PRIME;
                i++;
                continue;
            }
            if (end_line(s, i, line_hash, data, kind, o, a, &k) < 0)
                return -1;
            size_t width = c == '\r' && i + 1 < n && PyUnicode_READ(kind, data, i + 1) == '\n' ? 2 : 1;
            s->breaks++;
            s->break_chars += width;
            i += width;
            s->line = i;
            s->line_words = s->line_chars = s->line_code = s->sentences = 0;
            s->marks = s->ends_sentence = 0;
            line_hash = HASH_SEED;
            continue;
        }
        size_t start = i;
        uint64_t hash = HASH_SEED;
        unsigned seen = 0, last_class = class;
        s->sentences += s->ends_sentence && !(class & LOWER);
        if (!s->line_words && (class & BULLET))
            s->marks |= IS_BULLET;
        if (kind != PyUnicode_1BYTE_KIND && (class & spaceless)) {
            letters++;
            k.spaceless_letters++;
            seen = class;
            do {
                hash = (hash ^ c) * WORD_PRIME;
                line_hash = (line_hash ^ c) * LINE_PRIME;
                if (++i == n)
                    break;
                c = PyUnicode_READ(kind, data, i);
            } while (class_of(c) & MARK);
        } else {
            do {
                hash = (hash ^ c) * WORD_PRIME;
                line_hash = (line_hash ^ c) * LINE_PRIME;
                seen |= class;
                letters += (class & ALPHA) != 0;
                if (class & (PUNCT | TRIGGER)) {
                    if (class & TRIGGER) {
                        s->marks |= match_phrases(data, kind, s->line, i, n);
                    } else {
                        punctuation++;
                        s->line_code += (class & CODE) != 0;
                        k.hashes += c == '#';
                        s->marks |= c == '{' ? BRACKET : 0;
                        k.ellipses += c == 0x2026;
                        if (c == '.') {
                            dots = i == dots_end ? dots + 1 : 1;
                            dots_end = i + 1;
                            if (dots == 3) {
                                k.ellipses++;
                                dots = 0;
                            }
                        }
                    }
                }
                last_class = class;
                if (++i == n)
                    break;
                c = PyUnicode_READ(kind, data, i);
                class = class_of(c);
            } while (!(class & (SPACE | spaceless)));
        }
        size_t chars = i - start, tail = i - 1;
        s->ends_sentence = 0;
        if (last_class & (TERMINAL | CLOSER)) {
            while (tail > start && (class_of(PyUnicode_READ(kind, data, tail)) & CLOSER))
                tail--;
            s->ends_sentence = (class_of(PyUnicode_READ(kind, data, tail)) & TERMINAL) != 0;
        }
        if ((o->flags & WORDS) && add_word(hash, chars, spaced, a, &k) < 0)
            return -1;
        k.words++;
        k.alphabetic_words += (seen & ALPHA) != 0;
        int alnum = (seen & (ALPHA | NUMERIC)) != 0;
        k.alnum_words += alnum;
        k.alnum_word_chars += alnum ? chars : 0;
        s->line_words++;
        s->line_chars += chars;
        s->last_end = i;
        s->last_class = last_class;
        if (o->max_word_chars && chars > o->max_word_chars)
            s->marks |= LONG_WORD;
        spaced = 0;
    }
    if (end_line(s, n, line_hash, data, kind, o, a, &k) < 0 || ((o->flags & PARAGRAPHS) && end_paragraph(s, a, &k) < 0))
        return -1;
    k.letters = letters;
    k.punctuation = punctuation;
    *out = k;
    return 0;
}

/* Gopher's n-gram counts (Rae et al. 2021, table A1). top: characters of the most frequent n-gram (the first on a
   tie), its separators included, times its occurrences; 0 when none occurs twice, unless LONE_NGRAMS. duplicate: a walk from left to right
   takes an n-gram it has met before, counts its words' characters, and goes on behind it. */
static int count_ngrams(Arena *a, const Options *o, Counts *k)
{
    uint64_t *top = &k->top_2_gram_chars, *duplicate = &k->duplicate_5_gram_chars;
    const uint32_t *ids = a->ids.items;
    const Word *info = a->info.items;
    const int padded = (o->flags & LONE_NGRAMS) != 0; /* a space between the words of every script */
    if (reserve(&a->positions, k->words, sizeof(uint32_t)) < 0
        || reserve(&a->ngram_ids, k->words, sizeof(uint32_t)) < 0)
        return -1;
    uint32_t *positions = a->positions.items, *ngrams = a->ngram_ids.items;
    size_t candidates = 0;
    for (size_t i = 0; i < k->words; i++) {
        uint32_t id = ids[i] & ~SPACED;
        positions[candidates] = (uint32_t)i;
        ngrams[candidates] = id;
        candidates += info[id].count > 1;
    }
    for (size_t n = 2; n <= o->max_ngram && candidates > 1; n++) {
        size_t found = 0, next = 0, best = 0, kept = 0;
        if (table_reset(&a->ngrams, candidates) < 0)
            return -1;
        for (size_t j = 0; j + 1 < candidates; j++) {
            if (positions[j + 1] != positions[j] + 1)
                continue;
            size_t used = a->ngrams.used;
            int64_t id = table_insert(&a->ngrams, (uint64_t)ngrams[j] << 32 | ngrams[j + 1]);
            if (id < 0 || reserve(&a->counts, used + 1, sizeof(uint32_t)) < 0)
                return -1;
            uint32_t *counts = a->counts.items;
            counts[id] = a->ngrams.used == used ? counts[id] + 1 : 1;
            positions[found] = positions[j];
            ngrams[found++] = (uint32_t)id;
        }
        uint32_t *counts = a->counts.items;
        if (n <= 4) {
            for (size_t id = 1; id < a->ngrams.used; id++)
                best = counts[id] > counts[best] ? id : best;
            if (found && counts[best] > 1) {
                size_t j = 0, chars = 0;
                while (ngrams[j] != best)
                    j++;
                for (size_t w = positions[j]; w < positions[j] + n; w++)
                    chars += info[ids[w] & ~SPACED].chars + (w > positions[j] && (padded || (ids[w] & SPACED)));
                top[n - 2] = (uint64_t)chars * counts[best];
            }
        }
        for (size_t j = 0; j < found; j++) {
            uint32_t *count = &counts[ngrams[j]];
            if (n >= 5 && positions[j] >= next) {
                if (*count & SPACED) {
                    for (next = positions[j]; next < positions[j] + n; next++)
                        duplicate[n - 5] += info[ids[next] & ~SPACED].chars;
                }
                *count |= SPACED;
            }
            positions[kept] = positions[j];
            ngrams[kept] = ngrams[j];
            kept += (*count & ~SPACED) > 1;
        }
        candidates = kept;
        a->ngram_steps += a->ngrams.steps;
    }
    for (size_t n = 2, chars; padded && n <= 4 && n <= o->max_ngram && n <= k->words; n++) {
        chars = n - 1;
        for (size_t w = 0; w < n; w++)
            chars += info[ids[w] & ~SPACED].chars;
        top[n - 2] = top[n - 2] ? top[n - 2] : chars; /* none repeats: the first one */
    }
    return 0;
}
