"""What a process notes outlives it."""

import json
import subprocess
import sys

from refinery.transforms.core.live import HAND_BYTES

# What is left by processes that are killed with the last of these records in hand; an empty one is put down.
KILLED = """
import json, os, signal, sys
from refinery.transforms.core.live import Hand
left = []
for places in json.load(sys.stdin):
    hand = Hand()
    child = os.fork()
    if not child:
        for place in places:
            hand.take(*place) if place else hand.clear()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left.append(hand.read())
print(json.dumps(left))
"""
ORIGINS = ["a.jsonl@0", "a\nb@3", "\udce4.warc.gz@77", "ü@1"]


def test_what_killed_processes_leave() -> None:
    longer = ("extract", "a place longer than the next one@1")
    cases = [[longer, ("language", origin)] for origin in ORIGINS]
    nothing: list[list[object]] = [[], [longer, ()]]
    too_long = [longer, ("extract", "x" * HAND_BYTES)]  # not noted, rather than another place than the true one
    given = json.dumps([*cases, *nothing, too_long])
    words = [sys.executable, "-c", KILLED]
    left = json.loads(subprocess.run(words, input=given, check=True, capture_output=True, text=True).stdout)
    assert left == [*(["language", origin] for origin in ORIGINS), None, None, None]
