"""Checks of measurements: one file a question."""
