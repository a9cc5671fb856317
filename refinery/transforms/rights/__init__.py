"""Who has opted out, as of when: robots.txt, ai.txt, TDM, licences. Start at opt_out.py."""
