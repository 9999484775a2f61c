"""Statistics that know nothing of benchmarks."""
