"""The engine `trafilatura`: that library (Barbaresi, ACL 2021), for whoever has to reproduce a corpus made with it."""

import logging


def extract_trafilatura(html: str, mode: str, comments: bool) -> str:
    """Main text of a page by trafilatura, "" when it finds none. Imported on first use (0.5 s).

    mode: fast (no fallback extractors) | standard | precision | recall. No dates, no metadata, and none of its
    duplicate removal, whose cache would make a page's text depend on the pages before it. Its other caches hold
    results of pure functions.
    """
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs an error for each page without text
    text = trafilatura.extract(
        html,
        fast=mode == "fast",
        favor_precision=mode == "precision",
        favor_recall=mode == "recall",
        include_comments=comments,
        deduplicate=False,
        with_metadata=False,
    )
    return text or ""
