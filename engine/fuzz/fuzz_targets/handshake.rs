//! Any greeting and any answer to ours: the login refuses or goes on, and never panics.
#![no_main]

use dbdyno_wire::mysql::handshake::{AuthSwitch, Handshake, HandshakeResponse, parse_tls_request};
use dbdyno_wire::mysql::login::{self, Credentials, Login};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, Vec<u8>, Vec<Vec<u8>>)| {
    let (private, greeting, payloads) = input;
    let credentials = Credentials { user: "u", password: "p", database: "d", private };
    if let Ok(greeting) = login::greeting(&greeting) {
        let (mut login, ..) = Login::begin(credentials, &greeting, u32::MAX, &mut 1);
        for payload in &payloads {
            let _ = login.take(payload);
        }
    }
    let _ = (Handshake::parse(&greeting), HandshakeResponse::parse(&greeting));
    let _ = parse_tls_request(&greeting);
    let _ = AuthSwitch::parse(&greeting);
});
