"""Word stocks and a small grammar: the texts of the demo crawl."""
