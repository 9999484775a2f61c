"""Counters of the host and the server while a trial runs."""
