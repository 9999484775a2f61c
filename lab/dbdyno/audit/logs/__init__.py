"""Logs of other tools: lines without their wrappers, the runs in them, and what work they did."""
