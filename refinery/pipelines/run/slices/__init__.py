"""One run as a chain of steps, each an array of slices: commands that know of each other by files alone. Start at
cut.py."""
