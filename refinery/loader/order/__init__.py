"""The order of an epoch: a bijection computed for each position, mixes of domains, length stages. Start at order.py."""
