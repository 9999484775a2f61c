//! (being written on branch `wire`; the shape that `dataset` expects)
#![allow(missing_docs)]
use std::path::PathBuf;
use std::time::Duration;

pub enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: PathBuf },
}

pub struct Login {
    pub user: String,
    pub password: String,
    pub database: String,
}

#[derive(Debug)]
pub struct DialError;

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not yet")
    }
}

impl DialError {
    pub fn server_code(&self) -> Option<u16> {
        None
    }
    pub fn sqlstate(&self) -> &str {
        ""
    }
}

pub struct Session;

impl Session {
    pub fn connect(_: &Endpoint, _: &Login, _: Duration) -> Result<Self, DialError> {
        Err(DialError)
    }
    pub fn execute(&mut self, _: &str) -> Result<(), DialError> {
        Err(DialError)
    }
}
