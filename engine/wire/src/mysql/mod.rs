//! The MySQL client/server protocol ("classic", version 10), as MySQL and MariaDB speak it.
//!
//! Reading order: [`packet`] frames bytes, [`lenenc`] holds the integers and strings inside,
//! [`handshake`], [`auth`] and [`login`] open a session, [`command`] asks, [`response`] answers,
//! and [`scanner`] follows an answer at full speed without looking into its rows. [`compressed`] is
//! the layer below the packets when both ends agreed to compress.

pub mod auth;
pub mod capability;
pub mod command;
pub mod compressed;
pub mod handshake;
pub mod lenenc;
pub mod local_infile;
pub mod login;
pub mod packet;
pub mod parameter;
pub mod response;
pub mod result_set;
pub mod scanner;

mod cursor;

/// A payload out of step with the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {message}: its {part} could not be read")]
pub struct Malformed {
    /// The expected message.
    pub message: &'static str,
    /// The unreadable part of it.
    pub part: &'static str,
}
