"""Formats of exports, a file each, declared as an `ExportFormat`; ../registry.py finds them."""
