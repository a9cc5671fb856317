"""Files of the inputs' own formats with the rows that stay: byte for byte, with changed texts, with labels behind.

Start at copy_rows.py; what becomes of each row is said by a `Rows` (rows.py), where each file goes by output_paths.py.
"""
