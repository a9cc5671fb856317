"""Kernels in C of the stages: n-grams, MinHash, BPE, HTML blocks, classifiers."""
