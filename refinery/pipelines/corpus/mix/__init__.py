"""`refinery mix`: a view of chosen documents, domains and quantiles. Start at build.py."""
