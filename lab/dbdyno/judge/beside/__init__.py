"""What is said beside the verdicts: grid, ladder, scalability, stability, outliers."""
