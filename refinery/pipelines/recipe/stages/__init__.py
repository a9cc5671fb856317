"""What stages there are, in lines and in tables; a new one to begin with."""
