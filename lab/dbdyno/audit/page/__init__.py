"""Tables of a page, found and understood."""
