"""A run as Parquet or CSV tables."""
