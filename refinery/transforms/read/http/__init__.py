"""Messages of HTTP: chunks, header fields, media types. Start at fields.py."""
