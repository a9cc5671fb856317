"""The crawlers whose pages train language models, by the names that their operators publish for robots.txt."""

# fmt: off
AI_AGENTS = (
    "GPTBot",                               # OpenAI: platform.openai.com/docs/bots
    "ClaudeBot", "anthropic-ai", "Claude-Web",  # Anthropic: its support pages; the last two are its earlier names
    "Google-Extended",                      # Google: developers.google.com, "Google's common crawlers"
    "Applebot-Extended",                    # Apple: support.apple.com/119829
    "CCBot",                                # Common Crawl: commoncrawl.org/ccbot
    "meta-externalagent", "FacebookBot",    # Meta: developers.facebook.com, "Meta web crawlers"
    "Amazonbot",                            # Amazon: developer.amazon.com/amazonbot
    "Bytespider",                           # ByteDance
    "cohere-ai", "cohere-training-data-crawler",  # Cohere
    "AI2Bot", "Ai2Bot-Dolma",               # Allen Institute for AI: allenai.org/crawler
    "Diffbot",                              # Diffbot: docs.diffbot.com
    "omgili", "omgilibot", "webzio-extended",  # Webz.io: webz.io/bot.html
    "PanguBot",                             # Huawei
    "Timpibot",                             # Timpi
)
# fmt: on
"""Those that gather text only or partly for training. Left out are agents that fetch a page because somebody asked
for it (ChatGPT-User, Claude-User, Perplexity-User), those that index only for search (OAI-SearchBot,
Claude-SearchBot), and collectors of images."""
