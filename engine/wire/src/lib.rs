//! Bytes to messages of database protocols and back, both ends; no socket, no clock, no async.
//!
//! Whoever holds a socket hands bytes in and takes messages out. So the protocol is tested without
//! a server, one reactor serves every protocol, and the reference server shares the code. Nothing
//! here panics on foreign bytes: what cannot be read is an error that says what was found.
pub mod mysql;
pub mod postgres;

/// A value bound to a placeholder of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    BigInt(i64),
    /// A double.
    Double(f64),
    /// A string, in the session's character set.
    Text(&'a [u8]),
}
