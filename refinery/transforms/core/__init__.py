"""What every stage is made of: the document, the declaration of a stage, parameters, counters.

Start at stage.py and per_document.py.
"""
