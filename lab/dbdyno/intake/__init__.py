"""What other tools and pages wrote down, read as it was printed: logs, tables."""
