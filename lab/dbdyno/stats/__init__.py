"""Statistics without knowledge of benchmarks."""
