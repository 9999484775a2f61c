"""Results beside the verdicts: grid, ladder, scalability, stability, outliers."""
