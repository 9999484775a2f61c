//! The reference server as a program: each statement takes a known time (`reference/mod.rs`).
//!
//! `reference_server --service-ms N` prints where it listens and who may log in as one line of JSON
//! and serves until its standard input is closed, so it never outlives whoever started it.

use dbdyno_core::reference::{Reference, Script, Service};
use std::io::{Read, Write};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut service_ms = 0.0;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} wants a value"))?;
        match word.as_str() {
            "--service-ms" => service_ms = value.parse()?,
            _ => return Err(format!("{word}? known is --service-ms").into()),
        }
    }
    let service_time = Duration::try_from_secs_f64(service_ms / 1e3)?;
    let server =
        Reference::start(Script { service: Service::Fixed(service_time), ..Script::default() })?;
    let login = server.login();
    let told = serde_json::json!({
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": login.user,
        "password": login.password,
        "database": login.database,
    });
    writeln!(std::io::stdout(), "{told}")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
