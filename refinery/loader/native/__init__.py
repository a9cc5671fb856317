"""Kernels in C of the loader: masks, permutations, rows, CRCs of pages."""
