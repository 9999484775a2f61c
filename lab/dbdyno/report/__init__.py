"""Reports: verdicts become sections, charts and files. Start reading in `write`."""
