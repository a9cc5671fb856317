"""Refinery: raw crawl in, training shards out.

`refinery.loader` is what a training node needs, `refinery.transforms` the stages of the funnel, `refinery.pipelines`
the runs. Nothing is imported here, so that each stays free of what only the others need.
"""

# What pip knows this project as; the import name is `refinery`.
DISTRIBUTION = "corpus-refinery"
