"""`refinery init`: a recipe written from what files hold. Start at `draft.py`."""
