//! Foreign bytes never panic: what each fuzz target does, on a few random inputs in every test run.
//!
//! `engine/fuzz` calls the same functions for as long as one likes; these files must stay in step.

use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::compressed::{Codec, FrameError, Frames};
use dbdyno_wire::mysql::handshake::{AuthSwitch, Handshake, HandshakeResponse, parse_tls_request};
use dbdyno_wire::mysql::local_infile::FileRequest;
use dbdyno_wire::mysql::login::{self, Credentials, Login};
use dbdyno_wire::mysql::scanner::{ReplyShape, Scanner};
use dbdyno_wire::mysql::{auth, parameter, response, result_set};
use proptest::prelude::*;

const SHAPES: [ReplyShape; 3] = [ReplyShape::Text, ReplyShape::Binary, ReplyShape::Prepare];

/// Feeds the bytes whole and byte by byte: both must refuse, or both reach the same outcome. What stands
/// behind a reply is fed at once, since last words that are cut are refused.
fn scan(bytes: &[u8]) {
    for shape in SHAPES {
        for deprecate_eof in [false, true] {
            let mut scanner = Scanner::new(deprecate_eof);
            scanner.begin(shape);
            let whole = scanner.feed(bytes);
            scanner.begin(shape);
            let mut left = bytes.iter();
            let single = left
                .find_map(|byte| scanner.feed(std::slice::from_ref(byte)).transpose())
                .transpose()
                .and_then(|outcome| scanner.feed(left.as_slice()).map(|_| outcome));
            assert_eq!(whole.is_err(), single.is_err(), "{shape:?} {deprecate_eof}");
            if let (Ok(whole), Ok(single)) = (whole, single) {
                assert_eq!(whole, single);
            }
        }
    }
}

fn open_a_session(bytes: &[u8]) {
    let credentials = Credentials { user: "u", password: "p", database: "d", private: true };
    for plugin in [auth::Plugin::NativePassword, auth::Plugin::CachingSha2] {
        assert!(plugin.answer(b"p", bytes).len() >= 20);
    }
    let half = bytes.len() / 2;
    let (greeting, wish) = bytes.split_at(half);
    if let Ok(greeting) = login::greeting(greeting) {
        let _ = Login::begin(credentials, &greeting, u32::MAX, &mut 1).0.take(wish);
    }
    let _ = parse_tls_request(bytes);
    let _ = (Handshake::parse(bytes), HandshakeResponse::parse(bytes), AuthSwitch::parse(bytes));
}

/// The contents of the frames in `parts`, put together.
fn unpack<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, FrameError> {
    let (mut frames, mut codec, mut contents) = (Frames::default(), Codec::default(), Vec::new());
    for mut rest in parts {
        while let Some(content) = frames.next(&mut rest, &mut codec)? {
            contents.extend_from_slice(content);
        }
        assert!(rest.is_empty());
    }
    Ok(contents)
}

fn understand(bytes: &[u8]) {
    let _ = Command::parse(bytes);
    for count in [0, 1, 9] {
        let _ = parameter::parse(bytes, count, &mut Vec::new());
    }
    let _ = (response::Ok::parse(bytes), response::parse_eof(bytes));
    let _ = (response::ServerError::parse(bytes), response::PrepareOk::parse(bytes));
    let _ = (result_set::parse_column_count(bytes), result_set::parse_text_row(bytes, 3));
    let _ = FileRequest::parse(bytes).map(|request| request.is_for("rows"));
}

/// Packets with the right numbers, so that more than the first header is reached.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let first =
        prop_oneof![Just(0_u8), Just(1), Just(3), Just(0xfb), Just(0xfe), Just(0xff), any::<u8>()];
    let payload = (first, prop::collection::vec(any::<u8>(), 0..20));
    prop::collection::vec(payload, 0..8).prop_map(|payloads| {
        let mut bytes = Vec::new();
        for (sequence, (first, rest)) in (1_u8..).zip(payloads) {
            bytes.extend_from_slice(&[rest.len() as u8 + 1, 0, 0, sequence, first]);
            bytes.extend_from_slice(&rest);
        }
        bytes
    })
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        scan(&bytes);
        open_a_session(&bytes);
        understand(&bytes);
        assert_eq!(unpack([&bytes[..]].into_iter()), unpack(bytes.chunks(1)));
    }

    #[test]
    fn random_packets_are_scanned_alike_whole_and_cut(bytes in packets()) {
        scan(&bytes);
    }

    #[test]
    fn random_greetings_are_survived(tail in prop::collection::vec(any::<u8>(), 30..120)) {
        let mut bytes = b"\x0a8.0.33\0".to_vec();
        bytes.extend_from_slice(&tail);
        open_a_session(&[&bytes[..], &bytes[..]].concat());
        let _ = Handshake::parse(&bytes);
    }
}
