/* Names that mean something to the block extractor: elements, and the words that sites put into class, id and role.
 *
 * Elements follow section 4 and 13.1.2 of the HTML standard. The words are those that boilerplate removers look for
 * (Readability, trafilatura's XPaths, resiliparse's lists), sorted into groups; what a group is worth is learned. */

#ifndef REFINERY_HTMLBLOCKS_NAMES_H
#define REFINERY_HTMLBLOCKS_NAMES_H

#include "kernel.h"

/* What an element does to text. */
enum {
    BLOCK = 1,        /* text before and behind it are separate blocks */
    EMPTY = 2,        /* never has content */
    RAW = 4,          /* content runs to its end tag, whatever is in it, and is no text */
    MUTED = 8,        /* its content is parsed, but is no text */
    CLOSES_P = 16,    /* its start tag ends an open paragraph */
    CELL = 32,        /* a cell of a table */
    FENCE = 64,       /* end tags of other elements do not reach out of it */
    FORMAT = 128,     /* its end tag does not end blocks */
    NO_ELEMENT = 256, /* is not put on the stack */
    SOFT = 1024,      /* a block that is inline where a sentence runs on (htmlblocks_inline.h) */
    SPOKEN = 2048,    /* for screen readers alone */
    FORMULA = 512,    /* MathJax 3: what is shown is muted, and MathML for screen readers stands beside it */
};

/* Groups: where a block stands. The first of them are learned from words, the rest from elements. */
enum {
    G_NAV, G_BREAD, G_HEADER, G_FOOTER, G_SIDE, G_WIDGET, G_COMMENT, G_RELATED, G_SHARE, G_AD, G_COOKIE, G_MODAL,
    G_SUBSCRIBE, G_SEARCH, G_PAGER, G_META, G_AUTHOR, G_DATE, G_TAGS, G_ARTICLE, G_CONTENT, G_MAIN, G_POST, G_PRODUCT,
    G_PRICE, G_REVIEW, G_SUMMARY, G_CARD, G_GRID, G_TITLE, G_CAPTION, G_TOC, G_CODE, G_HIDDEN, G_QUOTE, G_SIGNATURE,
    G_ACTION, G_TAB, G_NOTICE, G_SECTION, G_LANGUAGE, G_SITE, G_DOCS, G_BIO, G_CONTACT, G_LATEST,
    T_NAV, T_HEADER, T_FOOTER, T_ASIDE, T_ARTICLE, T_MAIN, T_SECTION, T_FORM, T_LI, T_TABLE, T_DL, T_QUOTE, T_FIGURE,
    T_BUTTON, T_LINK, T_LABEL, T_PRE, T_HIDDEN,
    GROUPS,
};

_Static_assert(GROUPS == 64, "groups are bits of one word");

enum {
    E_OTHER, E_A, E_P, E_LI, E_UL, E_OL, E_DT, E_DD, E_DL, E_TABLE, E_TR, E_TD, E_TH, E_TBODY, E_THEAD, E_TFOOT,
    E_CAPTION, E_H1, E_H2, E_H3, E_H4, E_H5, E_H6, E_PRE, E_BR, E_HR, E_IMG, E_SCRIPT, E_STYLE, E_TITLE, E_META,
    E_BODY, E_HTML, E_HEAD, E_NOSCRIPT, E_TEMPLATE, E_SVG, E_MATH, E_SELECT, E_OPTION, E_TEXTAREA, E_INPUT, E_BUTTON,
    E_SPAN, E_B, E_STRONG, E_EM, E_I, E_CODE, E_DIV, E_QUOTE, E_TIME, E_LABEL, E_PLAIN, E_LINK, E_IFRAME, E_FORM,
    E_ARTICLE, E_SECTION, E_DETAILS, E_FIGURE, E_RUBY, E_KINDS,
};

typedef struct {
    const char *name;
    int kind, flags, group; /* group -1: none */
} Element;

static const Element ELEMENTS[] = {
    {"a", E_A, FORMAT, T_LINK}, {"abbr", E_OTHER, 0, -1}, {"acronym", E_OTHER, 0, -1},
    {"address", E_OTHER, BLOCK | CLOSES_P, G_CONTACT}, {"area", E_OTHER, EMPTY, -1},
    {"article", E_ARTICLE, BLOCK | CLOSES_P, T_ARTICLE}, {"aside", E_OTHER, BLOCK | CLOSES_P, T_ASIDE},
    {"audio", E_OTHER, BLOCK | SOFT | MUTED, -1}, {"b", E_B, FORMAT, -1}, {"base", E_LINK, EMPTY, -1},
    {"bdi", E_OTHER, 0, -1}, {"bdo", E_OTHER, 0, -1}, {"big", E_OTHER, FORMAT, -1},
    {"blockquote", E_QUOTE, BLOCK | CLOSES_P, T_QUOTE}, {"body", E_BODY, NO_ELEMENT | BLOCK, -1},
    {"br", E_BR, EMPTY, -1}, {"button", E_BUTTON, BLOCK | SOFT, T_BUTTON}, {"canvas", E_OTHER, MUTED, -1},
    {"caption", E_CAPTION, BLOCK | FENCE, G_CAPTION}, {"center", E_OTHER, BLOCK | CLOSES_P, -1},
    {"cite", E_OTHER, 0, -1}, {"code", E_CODE, FORMAT, -1}, {"col", E_OTHER, EMPTY, -1},
    {"colgroup", E_OTHER, NO_ELEMENT, -1}, {"datalist", E_OTHER, BLOCK | SOFT | MUTED, -1},
    {"dd", E_DD, BLOCK | CLOSES_P, T_DL}, {"del", E_OTHER, 0, -1},
    {"details", E_DETAILS, BLOCK | CLOSES_P, G_TAB}, {"dfn", E_OTHER, 0, -1},
    {"dialog", E_OTHER, BLOCK | CLOSES_P, G_MODAL}, {"dir", E_UL, BLOCK | CLOSES_P, -1},
    {"div", E_DIV, BLOCK | CLOSES_P, -1}, {"dl", E_DL, BLOCK | CLOSES_P, T_DL}, {"dt", E_DT, BLOCK | CLOSES_P, T_DL},
    {"em", E_EM, FORMAT, -1}, {"embed", E_OTHER, EMPTY, -1}, {"fieldset", E_OTHER, BLOCK | CLOSES_P, T_FORM},
    {"figcaption", E_OTHER, BLOCK | CLOSES_P, G_CAPTION}, {"figure", E_FIGURE, BLOCK | CLOSES_P, T_FIGURE},
    {"font", E_OTHER, FORMAT, -1}, {"footer", E_OTHER, BLOCK | CLOSES_P, T_FOOTER},
    {"form", E_FORM, BLOCK | CLOSES_P, T_FORM}, {"frame", E_OTHER, EMPTY, -1},
    {"frameset", E_OTHER, NO_ELEMENT, -1}, {"h1", E_H1, BLOCK | CLOSES_P, -1}, {"h2", E_H2, BLOCK | CLOSES_P, -1},
    {"h3", E_H3, BLOCK | CLOSES_P, -1}, {"h4", E_H4, BLOCK | CLOSES_P, -1}, {"h5", E_H5, BLOCK | CLOSES_P, -1},
    {"h6", E_H6, BLOCK | CLOSES_P, -1}, {"head", E_HEAD, NO_ELEMENT | BLOCK, -1},
    {"header", E_OTHER, BLOCK | CLOSES_P, T_HEADER}, {"hgroup", E_OTHER, BLOCK | CLOSES_P, -1},
    {"hr", E_HR, EMPTY | BLOCK | CLOSES_P, -1}, {"html", E_HTML, NO_ELEMENT | BLOCK, -1}, {"i", E_I, FORMAT, -1},
    {"iframe", E_IFRAME, RAW | BLOCK | SOFT, -1}, {"img", E_IMG, EMPTY, -1}, {"image", E_IMG, EMPTY, -1},
    {"input", E_INPUT, EMPTY, -1}, {"ins", E_OTHER, 0, -1}, {"kbd", E_OTHER, 0, -1}, {"label", E_LABEL, BLOCK | SOFT, T_LABEL},
    {"legend", E_OTHER, BLOCK, T_LABEL}, {"li", E_LI, BLOCK | CLOSES_P, T_LI}, {"link", E_LINK, EMPTY, -1},
    {"listing", E_PRE, BLOCK | CLOSES_P, T_PRE}, {"main", E_OTHER, BLOCK | CLOSES_P, T_MAIN},
    {"map", E_OTHER, 0, -1}, {"marquee", E_OTHER, BLOCK, G_LATEST}, {"mark", E_OTHER, 0, -1}, {"math", E_MATH, FENCE, -1},
    {"menu", E_UL, BLOCK | CLOSES_P, -1}, {"meta", E_META, EMPTY, -1}, {"nav", E_OTHER, BLOCK | CLOSES_P, T_NAV},
    {"mjx-assistive-mml", E_OTHER, 0, -1}, {"mjx-container", E_OTHER, FORMULA, -1}, {"mjx-math", E_OTHER, MUTED, -1},
    {"nobr", E_OTHER, FORMAT, -1}, {"noembed", E_IFRAME, RAW | BLOCK | SOFT, -1},
    {"noframes", E_IFRAME, RAW | BLOCK, -1},
    {"noscript", E_NOSCRIPT, BLOCK | SOFT, -1}, {"object", E_OTHER, BLOCK | SOFT | FENCE, -1},
    {"ol", E_OL, BLOCK | CLOSES_P, -1}, {"optgroup", E_OPTION, BLOCK, -1}, {"option", E_OPTION, BLOCK, -1},
    {"output", E_OTHER, 0, -1}, {"p", E_P, BLOCK | CLOSES_P, -1}, {"param", E_OTHER, EMPTY, -1},
    {"picture", E_OTHER, 0, -1}, {"plaintext", E_PLAIN, BLOCK | CLOSES_P, T_PRE}, {"pre", E_PRE, BLOCK | CLOSES_P, T_PRE},
    {"progress", E_OTHER, MUTED, -1}, {"q", E_OTHER, 0, -1}, {"rb", E_RUBY, 0, -1}, {"rp", E_RUBY, MUTED, -1},
    {"rt", E_RUBY, MUTED, -1}, {"rtc", E_RUBY, MUTED, -1},
    {"ruby", E_OTHER, 0, -1}, {"s", E_OTHER, FORMAT, -1}, {"samp", E_OTHER, 0, -1}, {"script", E_SCRIPT, RAW, -1},
    {"search", E_OTHER, BLOCK | CLOSES_P, G_SEARCH}, {"section", E_SECTION, BLOCK | CLOSES_P, T_SECTION},
    {"select", E_SELECT, BLOCK | SOFT | MUTED, -1}, {"small", E_OTHER, FORMAT, -1}, {"source", E_OTHER, EMPTY, -1},
    {"span", E_SPAN, 0, -1}, {"strike", E_OTHER, FORMAT, -1}, {"strong", E_STRONG, FORMAT, -1},
    {"style", E_STYLE, RAW, -1}, {"sub", E_OTHER, 0, -1}, {"summary", E_OTHER, BLOCK | CLOSES_P, T_LABEL},
    {"sup", E_OTHER, 0, -1}, {"svg", E_SVG, MUTED | FENCE, -1}, {"table", E_TABLE, BLOCK | FENCE, T_TABLE},
    {"tbody", E_TBODY, BLOCK, -1}, {"td", E_TD, CELL | FENCE, -1}, {"template", E_TEMPLATE, BLOCK | FENCE, -1},
    {"textarea", E_TEXTAREA, RAW | BLOCK | SOFT, -1}, {"tfoot", E_TFOOT, BLOCK, -1}, {"th", E_TH, CELL | FENCE, -1},
    {"thead", E_THEAD, BLOCK, -1}, {"time", E_TIME, 0, G_DATE}, {"title", E_TITLE, RAW, -1},
    {"tr", E_TR, BLOCK, -1}, {"track", E_OTHER, EMPTY, -1}, {"tt", E_OTHER, FORMAT, -1}, {"u", E_OTHER, FORMAT, -1},
    {"ul", E_UL, BLOCK | CLOSES_P, -1}, {"var", E_OTHER, 0, -1}, {"video", E_OTHER, BLOCK | SOFT | MUTED, -1},
    {"wbr", E_OTHER, EMPTY, -1}, {"xmp", E_PRE, BLOCK | CLOSES_P, T_PRE},
};

/* Words of class, id, role and itemprop. A blank is the border of a word: everything but a letter is one, and so is a
 * step from lower to upper case. */
static const struct {
    const char *word;
    int group;
} WORDS[] = {
    {"nav", G_NAV}, {"menu", G_NAV}, {"crumb", G_BREAD}, {"header", G_HEADER}, {"masthead", G_HEADER},
    {"banner", G_HEADER}, {"topbar", G_HEADER}, {"footer", G_FOOTER}, {" foot ", G_FOOTER}, {"copyright", G_FOOTER},
    {"colophon", G_FOOTER}, {"bottom", G_FOOTER}, {"contentinfo", G_FOOTER}, {"side", G_SIDE}, {" rail", G_SIDE},
    {"complementary", G_SIDE}, {"widget", G_WIDGET}, {"comment", G_COMMENT}, {"disqus", G_COMMENT},
    {"respond", G_COMMENT}, {"related", G_RELATED}, {"recommend", G_RELATED}, {"similar", G_RELATED},
    {"upsell", G_RELATED}, {"cross", G_RELATED}, {"also", G_RELATED}, {" more ", G_RELATED}, {"see also", G_RELATED},
    {"readmore", G_RELATED}, {"popular", G_LATEST}, {"trending", G_LATEST}, {"recent", G_LATEST},
    {"latest", G_LATEST}, {"ticker", G_LATEST}, {"breaking", G_LATEST},
    {"newsline", G_LATEST}, {"lenta", G_LATEST}, {"novost", G_LATEST}, {"share", G_SHARE}, {"sharing", G_SHARE}, {"social", G_SHARE}, {"follow", G_SHARE},
    {"twitter", G_SHARE}, {"facebook", G_SHARE}, {" ad ", G_AD}, {" ads ", G_AD}, {"advert", G_AD},
    {"sponsor", G_AD}, {"promo", G_AD}, {"outbrain", G_AD}, {"taboola", G_AD}, {"affiliate", G_AD},
    {"cookie", G_COOKIE}, {"consent", G_COOKIE}, {"gdpr", G_COOKIE}, {"privacy", G_COOKIE}, {"onetrust", G_COOKIE},
    {"modal", G_MODAL}, {"popup", G_MODAL}, {"overlay", G_MODAL}, {"dialog", G_MODAL}, {"drawer", G_MODAL},
    {"canvas", G_MODAL}, {"lightbox", G_MODAL}, {"tooltip", G_MODAL}, {"dropdown", G_MODAL}, {"flyout", G_MODAL},
    {"subscri", G_SUBSCRIBE}, {"newsletter", G_SUBSCRIBE}, {"signup", G_SUBSCRIBE}, {"sign up", G_SUBSCRIBE},
    {"login", G_SUBSCRIBE}, {"signin", G_SUBSCRIBE}, {"paywall", G_SUBSCRIBE}, {"register", G_SUBSCRIBE},
    {"search", G_SEARCH}, {"filter", G_SEARCH}, {"facet", G_SEARCH}, {"sort", G_SEARCH}, {"refine", G_SEARCH},
    {"paginat", G_PAGER}, {"pager", G_PAGER}, {"page nav", G_PAGER}, {"meta", G_META}, {"author", G_AUTHOR},
    {"byline", G_AUTHOR}, {"avatar", G_AUTHOR}, {"user", G_AUTHOR}, {"member", G_AUTHOR}, {"profile", G_AUTHOR},
    {"date", G_DATE}, {"time", G_DATE}, {"publish", G_DATE}, {" tag", G_TAGS}, {"tags ", G_TAGS},
    {"categor", G_TAGS}, {"keyword", G_TAGS}, {"badge", G_TAGS}, {"article", G_ARTICLE}, {"story", G_ARTICLE},
    {"blog", G_ARTICLE}, {"news ", G_ARTICLE}, {"entry", G_ARTICLE}, {"content", G_CONTENT}, {"body", G_CONTENT},
    {"text", G_CONTENT}, {"prose", G_CONTENT}, {"markdown", G_CONTENT}, {" rte", G_CONTENT}, {"rich", G_CONTENT},
    {"wysiwyg", G_CONTENT}, {" copy ", G_CONTENT}, {"main", G_MAIN}, {"primary", G_MAIN}, {"post", G_POST},
    {"thread", G_POST}, {"message", G_POST}, {"forum", G_POST}, {"topic", G_POST}, {"discussion", G_POST},
    {"product", G_PRODUCT}, {"item", G_PRODUCT}, {" sku", G_PRODUCT}, {"price", G_PRICE}, {"cart", G_PRICE},
    {"buy", G_PRICE}, {"checkout", G_PRICE}, {" qty", G_PRICE}, {"quantity", G_PRICE}, {"stock", G_PRICE},
    {"shipping", G_PRICE}, {"deliver", G_PRICE}, {"wishlist", G_PRICE}, {"variant", G_PRICE}, {"swatch", G_PRICE},
    {"review", G_REVIEW}, {"rating", G_REVIEW}, {" star", G_REVIEW}, {"testimonial", G_REVIEW}, {"desc", G_SUMMARY},
    {"summary", G_SUMMARY}, {"detail", G_SUMMARY}, {" spec", G_SUMMARY}, {"feature", G_SUMMARY},
    {"overview", G_SUMMARY}, {"excerpt", G_SUMMARY}, {"intro", G_SUMMARY}, {" lead ", G_SUMMARY},
    {"subtitle", G_SUMMARY}, {" dek ", G_SUMMARY}, {"card", G_CARD}, {" tile", G_CARD}, {"teaser", G_CARD},
    {"thumb", G_CARD}, {"grid", G_GRID}, {"list", G_GRID}, {"collection", G_GRID}, {"carousel", G_GRID},
    {"slide", G_GRID}, {"swiper", G_GRID}, {"slick", G_GRID}, {"gallery", G_GRID}, {"result", G_GRID},
    {"title", G_TITLE}, {"heading", G_TITLE}, {"headline", G_TITLE}, {"caption", G_CAPTION}, {"credit", G_CAPTION},
    {"figure", G_CAPTION}, {"image", G_CAPTION}, {" img ", G_CAPTION}, {"photo", G_CAPTION}, {"media", G_CAPTION},
    {"video", G_CAPTION}, {" toc", G_TOC}, {"contents", G_TOC}, {"code", G_CODE}, {"highlight", G_CODE},
    {"snippet", G_CODE}, {"syntax", G_CODE}, {"hidden", G_HIDDEN}, {" hide", G_HIDDEN}, {" sr only", G_HIDDEN},
    {"visually", G_HIDDEN}, {"screen reader", G_HIDDEN}, {"screenreader", G_HIDDEN}, {"sronly", G_HIDDEN},
    {"offscreen", G_HIDDEN}, {"off screen", G_HIDDEN}, {"clipped", G_HIDDEN}, {"invisible", G_HIDDEN}, {"skip", G_HIDDEN},
    {"print", G_HIDDEN}, {"quote", G_QUOTE}, {"signature", G_SIGNATURE}, {" sig ", G_SIGNATURE},
    {"reply", G_ACTION}, {"action", G_ACTION}, {"button", G_ACTION}, {"btn", G_ACTION}, {" cta", G_ACTION},
    {" like", G_ACTION}, {" vote", G_ACTION}, {"toolbar", G_ACTION}, {"control", G_ACTION}, {" tab ", G_TAB},
    {" tabs", G_TAB}, {"tabpanel", G_TAB}, {"accordion", G_TAB}, {"collaps", G_TAB}, {"toggle", G_TAB},
    {" faq", G_TAB}, {"question", G_TAB}, {"answer", G_TAB}, {"expand", G_TAB}, {"alert", G_NOTICE},
    {"notice", G_NOTICE}, {"notification", G_NOTICE}, {"disclaimer", G_NOTICE}, {"legal", G_NOTICE},
    {"warning", G_NOTICE}, {"announce", G_NOTICE}, {"hero", G_SECTION}, {"section", G_SECTION},
    {"panel", G_SECTION}, {"module", G_SECTION}, {"block", G_SECTION}, {" lang", G_LANGUAGE},
    {"locale", G_LANGUAGE}, {"country", G_LANGUAGE}, {"currency", G_LANGUAGE}, {"region", G_LANGUAGE},
    {"site", G_SITE}, {"global", G_SITE}, {" doc", G_DOCS}, {" api", G_DOCS}, {"reference", G_DOCS},
    {"guide", G_DOCS}, {"tutorial", G_DOCS}, {"method", G_DOCS}, {" bio", G_BIO}, {"contact", G_CONTACT},
    {"address", G_CONTACT}, {"location", G_CONTACT}, {"phone", G_CONTACT}, {" map ", G_CONTACT},
    {"hours", G_CONTACT},
};

/* Words of texts that are about the site, in languages with spaces. Looked up word by word, in small letters. */
static const char *const SITE_WORDS[] = {
    "copyright", "cookie", "cookies", "privacy", "terms", "subscribe", "newsletter", "login", "register", "share",
    "tweet", "follow", "facebook", "twitter", "instagram", "linkedin", "pinterest", "whatsapp", "youtube", "comments",
    "comment", "related", "advertisement", "sponsored", "reserved", "rights", "policy", "conditions", "contact",
    "menu", "search", "skip", "click", "sign", "cart", "checkout", "wishlist", "shipping", "returns", "reply",
    "report", "permalink", "quote", "print", "email", "download", "filter", "sort", "reset", "loading", "javascript",
    "browser", "enable", "unsubscribe", "account", "password", "joined", "posts", "views", "replies", "previous",
    "next", "home", "impressum", "datenschutz", "teilen", "kommentare", "kommentar", "anmelden", "abonnieren",
    "anzeige", "mehr", "weiterlesen", "suche", "partager", "commentaires", "connexion", "inscription",
    "confidentialit", "contacto", "compartir", "comentarios", "suscribirse", "privacidad", "read", "more", "see",
    "show", "view", "all", "updated", "published", "posted", "author", "tags", "category", "categories", "popular",
    "trending", "latest", "recommended", "stock", "quantity", "buy", "price", "sale", "reviews", "rating", "stars",
    /* Italian, Portuguese, Dutch, Polish, Turkish, Indonesian */
    "condividi", "commenti", "cerca", "accedi", "iscriviti", "pubblicit", "leggi", "correlati", "compartilhar",
    "entrar", "publicidade", "relacionadas", "pesquisa", "delen", "reacties", "zoeken", "inloggen", "lees", "udost",
    "komentarze", "szukaj", "zaloguj", "reklama", "czytaj", "payla", "yorum", "yorumlar", "reklam", "oku", "haberler",
    "bagikan", "komentar", "cari", "masuk", "iklan", "terkait", "selengkapnya", "baca",
    /* Russian, Ukrainian, Bulgarian, Greek */
    "поделиться", "комментарии", "комментарий", "комментировать", "поиск", "войти", "вход", "регистрация", "подписаться",
    "подписка", "подпишитесь", "реклама", "рекламы", "читайте", "читать", "также", "главная", "меню", "новости", "рубрики",
    "теме", "популярное", "контакты", "редакция", "правила", "соглашение", "конфиденциальности", "защищены", "перепечатке",
    "коментарі", "пошук", "підписатися", "увійти", "новини", "головна", "читайте", "також", "споделяне", "коментари",
    "търсене", "начало", "още", "σχόλια", "αναζήτηση", "σύνδεση", "εγγραφή", "διαβάστε", "ειδήσεις", "αρχική",
    /* Arabic, Persian, Urdu, Hebrew */
    "مشاركة", "شارك", "تعليقات", "تعليق", "التعليقات", "بحث", "البحث", "تسجيل", "الدخول", "اشترك", "الاشتراك", "إعلان",
    "الرئيسية", "القائمة", "المزيد", "اقرأ", "أيضا", "الأخبار", "أخبار", "اتصل", "الخصوصية", "محفوظة", "الحقوق",
    "نظرات", "نظر", "جستجو", "ورود", "عضویت", "اشتراک", "تبلیغات", "صفحه", "اخبار", "بیشتر", "مرتبط", "تماس", "حقوق",
    "תגובות", "שתף", "שיתוף", "חיפוש", "התחברות", "הרשמה", "פרסומת", "חדשות", "עוד", "צור", "קשר", "תפריט", "זכויות",
    /* Hindi, Bengali, Korean */
    "शेयर", "टिप्पणी", "खोजें", "लॉगिन", "विज्ञापन", "समाचार", "संपर्क", "होम", "पढ़ें", "संबंधित", "শেয়ার", "মন্তব্য", "বিজ্ঞাপন",
    "খবর", "যোগাযোগ", "আরও", "공유", "댓글", "검색", "로그인", "회원가입", "구독", "광고", "뉴스", "메뉴", "더보기", "기사", "문의",
    "이용약관", "개인정보처리방침", "무단전재",
};

static inline uint32_t name_hash(const uint8_t *name, size_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a; two names with one hash are taken for one, which only costs quality */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 32 : name[i])) * 16777619u;
    return hash ? hash : 1;
}

#endif
