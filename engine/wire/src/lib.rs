//! Bytes ⇄ messages of database protocols, both ends; no socket, no clock, no async.
pub mod mysql;
