"""`refinery card`: data cards, Croissant, bills of materials, the summary of the AI Act. Start at cards.py."""
