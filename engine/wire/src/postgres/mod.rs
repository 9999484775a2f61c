//! PostgreSQL's protocol, version 3.0: the client's half, and the server's as far as tests need it.
//!
//! Reading order: [`message`] frames bytes and writes a client's messages, [`login`] opens a
//! session with [`scram`], and [`scanner`] follows an answer at full speed without looking into its
//! rows.
//!
//! Source: "Frontend/Backend Protocol" in PostgreSQL's documentation.

pub mod login;
pub mod message;
pub mod scanner;
pub mod scram;
