"""What pages are made of: documents, samples, differences, judgements, all bounded. Start at looked_at.py."""
