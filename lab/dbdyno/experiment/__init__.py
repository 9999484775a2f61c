"""Execution of a plan: a run, its arms, its trials."""
