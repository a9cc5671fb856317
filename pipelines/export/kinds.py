"""What manifests of exports call themselves: apart from `options`, which needs all formats."""

KIND, RUN_KIND = "refinery-export", "refinery-export-run"  # of manifest.json and _run.json
TOKENS = "torch"  # the one format of tokens without documents
