"""Kept documents into shards: order, columns, removals. Start at shards.py."""
