"""Numbers with units and prices, as recipes and flags have them. Start at quantity.py."""
