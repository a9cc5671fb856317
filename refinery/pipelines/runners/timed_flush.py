"""The limit that switches the timed flush of Beam's data channels off, in every process that this project starts.

Beam 2.77 can flush its data buffers by time from a second thread, under a lock that writing does not take: an element
written between that flush's copy and its clearing of the buffer is lost (docs/beam-data-loss.md). Buffers are flushed
by size and at the end of a bundle only.
"""

NO_TIMED_FLUSH = 0  # milliseconds
