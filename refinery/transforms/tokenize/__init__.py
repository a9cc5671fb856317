"""From text to token ids, and back. Start at load_tokenizer.py and encode.py."""
