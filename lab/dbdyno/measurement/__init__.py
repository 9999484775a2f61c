"""What was seen: the nouns between making and judging."""
