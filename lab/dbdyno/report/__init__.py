"""What is told: verdicts become sections, charts and files; `write` is the door."""
