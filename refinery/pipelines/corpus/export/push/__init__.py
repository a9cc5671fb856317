"""`card --push`, `export --push`: a corpus or an export as a data set of Hugging Face's hub. Start at `push_hub.py`."""
