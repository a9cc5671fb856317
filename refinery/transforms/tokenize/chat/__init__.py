"""Conversations to texts: a tokenizer's chat template in a sandbox, and which characters are trained. Start with
conversations.py, the stage."""
