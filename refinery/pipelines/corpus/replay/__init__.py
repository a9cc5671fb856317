"""One page, judged again by a recipe. Start at replay.py."""
