"""Adapters for PyTorch and its frameworks. Start at dataset.py; the names are in adapter.py."""
