"""What was read of each input file, published, and settled against the list of inputs. Start at settle.py."""
