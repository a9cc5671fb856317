"""The formats of exports of texts, each declared in a file of its own; registry.py finds them."""
