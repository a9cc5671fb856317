"""Pages and cards for people to read."""
