"""JSON and YAML as texts: objects whose values stay as they are written, documents of untrusted origin."""
