"""The append-only store, bundles, and their readers."""
