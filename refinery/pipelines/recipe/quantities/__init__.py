"""Numbers with units and prices in recipes and flags. Start at quantity.py."""
