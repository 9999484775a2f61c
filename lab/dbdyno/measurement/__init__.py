"""What trials observed: the values that making and judging share."""
