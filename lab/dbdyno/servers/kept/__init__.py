"""Servers that stay up between commands."""
