"""What is kept: the append-only store, bundles, and what reads them."""
