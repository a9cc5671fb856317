"""The demo and the code demo on every engine that runs here, each held to the same bytes: `make test-engines`."""
