"""Gets, initialises, configures, starts, checks and stops servers; `open` is the door."""
