"""Which blocks of a page are text: features, a model, rendering. Start at extract_blocks.py."""
