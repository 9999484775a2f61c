"""Getting server programs: catalog, download, cache."""
