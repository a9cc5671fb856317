"""Credentials, settings and signatures of S3.

signing.py signs requests, credentials.py finds keys, settings.py reads the environment; ../s3_client.py sends requests.
"""
