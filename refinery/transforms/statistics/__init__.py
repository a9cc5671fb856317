"""Statistics of the documents at points of the funnel: bounded, and the same however the work was cut."""
