//! Any bytes, cut at any place, as a reply, a login, a row, a certificate or a SCRAM exchange of PostgreSQL: refused
//! or followed.
#![no_main]

use dbdyno_wire::postgres::login::Login;
use dbdyno_wire::postgres::message::{self, ServerError};
use dbdyno_wire::postgres::scanner::Scanner;
use dbdyno_wire::postgres::scram::{Binding, Scram};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<(u8, Vec<u8>)>)| {
    let (parts, messages) = input;
    let mut whole = Scanner::default();
    whole.begin();
    let expected = whole.feed(&parts.concat());
    let mut scanner = Scanner::default();
    scanner.begin();
    let found: Result<Vec<_>, _> = parts.iter().map(|part| scanner.feed(part)).collect();
    assert_eq!(expected.is_err(), found.is_err());
    let mut login = Login::new("joe", "secret", Binding::None, false);
    let mut scram = Scram::new("secret", Binding::NotOffered);
    for (kind, payload) in &messages {
        let _ = login.take(*kind, payload);
        let _ = Binding::of_certificate(payload);
        let _ = ServerError::parse(payload);
        if let Some(row) = message::row(payload) {
            assert!(row.iter().flatten().map(|value| value.len()).sum::<usize>() <= payload.len());
        }
        if scram.answer(payload).is_ok() {
            assert!(scram.check(b"v=AAAA").is_err());
        }
    }
});
