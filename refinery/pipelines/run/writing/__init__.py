"""What phase 3 of a run writes: shards, or files of the shape of the inputs, and what the accounts say of these."""
