"""Checks of measurements: one file per subject."""
