"""Objects of JSON as texts, whose values stay as they are written."""
