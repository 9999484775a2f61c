"""Servers that run on this machine: processes, files, network."""
