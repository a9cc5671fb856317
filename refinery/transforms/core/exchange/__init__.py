"""How data crosses between workers, and how it is counted. Start at exchange.py."""
