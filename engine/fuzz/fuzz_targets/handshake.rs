//! Any greeting and any answer to ours: the login refuses or goes on, and never panics.
#![no_main]

use dbdyno_wire::mysql::handshake::{AuthSwitch, Handshake, HandshakeResponse};
use dbdyno_wire::mysql::login::{Credentials, Login};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, Vec<u8>, Vec<Vec<u8>>)| {
    let (private, greeting, payloads) = input;
    let credentials = Credentials { user: "u", password: "p", database: "d", private };
    if let Ok((mut login, ..)) = Login::begin(credentials, &greeting) {
        for payload in &payloads {
            let _ = login.take(payload);
        }
    }
    let _ = (Handshake::parse(&greeting), HandshakeResponse::parse(&greeting));
    let _ = AuthSwitch::parse(&greeting);
});
