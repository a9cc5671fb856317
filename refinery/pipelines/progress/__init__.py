"""What a command tells while it works: live bars in a terminal, plain lines elsewhere, JSON events for collectors."""
