"""`refinery adopt`, `blend`: files of Megatron's own tools as a corpus, and back. Start at adopt.py."""
