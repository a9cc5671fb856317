"""The files of a corpus, as objects: manifest, listings, shards, provenance, removals, views.

Start at manifest.py; the columns of all files are a table in document_fields.py; the contract is docs/format.md.
"""
