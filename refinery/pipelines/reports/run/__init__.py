"""`refinery report`: a finished run as one page. Start at report_page.py."""
