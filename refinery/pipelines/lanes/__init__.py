"""The lanes: their stages in order, on one screen each."""
