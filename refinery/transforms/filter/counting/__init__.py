"""How other projects count lines, words and n-grams."""
