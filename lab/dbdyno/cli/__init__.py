"""The command line, a file for each command; `flow` is the main path."""
