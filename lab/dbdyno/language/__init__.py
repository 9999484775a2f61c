"""Sentences in several languages."""
