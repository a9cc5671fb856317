"""Refinery: raw crawl in, training shards out.

`refinery.loader` is for training nodes, `refinery.transforms` has the stages of the funnel, `refinery.pipelines` the
runs. Nothing is imported here, so none of them loads what only the others need.
"""

# What pip knows this project as; the import name is `refinery`.
DISTRIBUTION = "corpus-refinery"
