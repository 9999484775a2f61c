"""A workspace as pages in a browser."""
