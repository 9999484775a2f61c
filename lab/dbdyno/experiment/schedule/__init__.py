"""The trials of a run in their order, and how long they take."""
