"""The rows that are loaded: their copies, their digest, the room they take on disk."""
