"""Servers kept up between commands."""
