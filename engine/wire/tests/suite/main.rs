//! All integration tests of the protocols, in a single program.

mod arbitrary_bytes;
mod compressed;
mod login;
mod scanner;
