"""Names of the records of submissions in a work location (run/cluster/submission.py)."""

import re

FOLDER = "cluster"
RECORD = re.compile(r"cluster/(?P<what>submission|jobs)-(?P<number>[0-9]{5})\.json")
