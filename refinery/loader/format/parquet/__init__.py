"""Parquet that may be damaged or forged, read within bounds. Start at guarded.py."""
