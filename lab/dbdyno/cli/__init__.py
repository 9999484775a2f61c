"""The command line: one file a command; `flow` is the main path."""
