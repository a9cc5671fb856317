"""What a page declares of its licence and of training. Start at page_declarations.py."""
