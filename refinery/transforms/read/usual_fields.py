"""Names under which public data sets keep a text, for sources that do not say which field holds theirs."""

from collections.abc import Mapping
from types import MappingProxyType

# Field -> where it is the field of the text. `text` is the default and not among them. Left out are names that hold
# something else as often: `html` (markup, which `content: html` extracts), `code`, `title`, `abstract`, `summary`.
USUAL_TEXT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "content": "tiiuae/falcon-refinedweb, OSCAR 23.01, WanJuan",
        "raw_content": "togethercomputer/RedPajama-Data-V2, CCNet",
        "content_text": "JSON Feed 1.1",
        "contents": "collections of Anserini and Pyserini",
        "page_content": "documents of LangChain",
        "body": "comments of Pushshift's Reddit dumps",
        "document": "EdinburghNLP/xsum",
        "article": "abisee/cnn_dailymail",
        "plain_text": "stanford-oval/ccnews",
        "maintext": "news-please",
        "markdown": "pages that were converted to Markdown, such as those of crawling services",
    }
)

# Of source code, where `content` is the default (bigcode/the-stack, bigcode/starcoderdata).
USUAL_CODE_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "code": "codeparrot/github-code",
        "text": "the GitHub part of togethercomputer/RedPajama-Data-1T",
    }
)
