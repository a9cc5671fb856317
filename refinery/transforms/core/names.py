"""Names in a run's manifest that readers of a corpus need without the stages, and without pydantic."""

PHASES = ("clean", "dedup", "shards")

# The stage that holds sources to their targets, and its reason, which rejects/ never lists.
TARGET_STAGE, OVER_TARGET = "target", "over-target"
