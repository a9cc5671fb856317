"""Recipes: read, checked, and turned into the graphs of the phases. Start at recipe.py and graphs.py."""
