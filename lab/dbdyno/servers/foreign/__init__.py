"""Servers that the lab does not start as processes: containers and endpoints."""
