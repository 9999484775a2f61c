//! All integration tests of the protocol, in one program.

mod arbitrary_bytes;
mod compressed;
mod login;
mod scanner;
