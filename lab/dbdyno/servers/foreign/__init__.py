"""Servers that are not ours to start: containers and endpoints."""
