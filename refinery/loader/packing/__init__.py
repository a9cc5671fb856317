"""Best-fit packing while streaming: whole documents in rows, other neighbours in each epoch. Start at packing.py."""
