"""The Rust engine as the lab sees it: a child process, its spec, its record."""
