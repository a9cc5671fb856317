"""What stands in tables, whoever wrote them: dialects of CSV and TSV, values of Arrow, values that are not exact."""
