"""Observations of trials: the values shared by making (experiments) and judging (verdicts)."""
