"""What is done: a run, its arms, its trials."""
