//! Bytes ⇄ messages of database protocols, both ends; no socket, no clock, no async.
//!
//! Whoever holds a socket hands bytes in and takes messages out. This keeps the protocol testable without
//! a server, lets one reactor serve every protocol, and gives the yardstick server its other end for free.
//! Nothing here panics on foreign bytes: what cannot be read is an error that says what was found.
pub mod mysql;
