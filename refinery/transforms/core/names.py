"""Names in a run's manifest that readers of a corpus need without the stages, and without pydantic."""

PHASES = ("clean", "dedup", "shards")

# Notes of documents that a run labels and would have dropped: why, and the id of the one that would have stayed for it.
LABEL_REASON, LABEL_ORIGINAL = "label_reason", "label_original"
LABEL_SPANS = "label_"  # before the name of a label with places in the text
ROW_CHANGED = "row_changed"  # of a document that goes back to its row: 1 where a stage changed its text

# The stage that holds sources to their targets, and its reason, which rejects/ never lists.
TARGET_STAGE, OVER_TARGET = "target", "over-target"
