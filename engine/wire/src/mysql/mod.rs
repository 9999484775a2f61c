//! The MySQL client/server protocol.
