"""What a run measured of its documents, as statistics.json beside the manifest."""
