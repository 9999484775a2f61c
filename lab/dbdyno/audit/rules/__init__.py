"""Rules of an audit, one file a question."""
