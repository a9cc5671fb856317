"""Credentials, settings and signatures of S3. Start at settings.py."""
