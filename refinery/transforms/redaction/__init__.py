"""What is taken out of texts and addresses: patterns of secrets and of personal data."""
