"""The lane for source code: languages, licences, heuristics, chunks.

Stages are in the files named *_stage.py and source_text.py.
"""
