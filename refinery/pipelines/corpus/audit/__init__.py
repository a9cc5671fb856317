"""`refinery audit`: a sample of the inputs, judged again and compared with what is published. Start at audit.py."""
