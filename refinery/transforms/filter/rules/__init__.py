"""Rules over columns, as a recipe writes them: grammar, evaluation, the stage `keep`. Start at keep.py."""
