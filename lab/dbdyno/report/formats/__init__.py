"""The forms in which a report is written: HTML, Markdown, terminal."""
