"""Audit of what others published: numbers, claims and settings held against each other. Pure."""
