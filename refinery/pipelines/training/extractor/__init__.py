"""The model of the extractor: labels, features, boosted trees. Start at train.py."""
