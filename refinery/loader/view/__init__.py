"""Views: part of one or more corpora, read as one. Start at opened_view.py."""
