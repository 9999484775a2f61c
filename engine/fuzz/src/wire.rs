//! Fuzz targets of the protocols: any bytes are refused or understood, alike whole and in pieces,
//! without a panic.
//!
//! The tests of the wire crate run these functions too, on the corpus and on random bytes.

use dbdyno_wire::WholePassword;
use dbdyno_wire::mysql::auth::Plugin;
use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::compressed::{Codec, FrameError, Frames};
use dbdyno_wire::mysql::handshake::{AuthSwitch, Handshake, HandshakeResponse};
use dbdyno_wire::mysql::local_infile::FileRequest;
use dbdyno_wire::mysql::login::{self, Credentials, Login};
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, ScanError, Scanner};
use dbdyno_wire::mysql::{parameter, response, result_set};
use dbdyno_wire::postgres;
use dbdyno_wire::postgres::message::ServerError;
use dbdyno_wire::postgres::scram::{Binding, Scram};

const SHAPES: [ReplyShape; 3] = [ReplyShape::Text, ReplyShape::Binary, ReplyShape::Prepare];

/// A MySQL's reply of any shape and the bytes after it, fed whole, byte by byte, and in pieces of a
/// length given by the first byte.
pub fn scanner(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    for shape in SHAPES {
        for deprecate_eof in [false, true] {
            let fed = |length: usize| -> Result<Option<Outcome>, ScanError> {
                let mut scanner = Scanner::new(deprecate_eof);
                scanner.begin(shape);
                let mut found = None;
                for piece in bytes.chunks(length) {
                    found = found.or(scanner.feed(piece)?);
                }
                Ok(found)
            };
            let whole = fed(bytes.len().max(1));
            for length in [1, 1 + usize::from(cut)] {
                let found = fed(length);
                assert_eq!(whole.is_err(), found.is_err(), "{shape:?} {deprecate_eof} {length}");
                if let (Ok(whole), Ok(found)) = (&whole, &found) {
                    assert_eq!(whole, found);
                }
            }
        }
    }
}

/// A MySQL's greeting and its next payloads, each after its length in two bytes; the same bytes as
/// any other message of a login.
pub fn handshake(bytes: &[u8]) {
    let _ = (Handshake::parse(bytes), HandshakeResponse::parse(bytes), AuthSwitch::parse(bytes));
    for plugin in [Plugin::NativePassword, Plugin::CachingSha2] {
        assert!(plugin.answer(b"p", bytes).len() >= 20);
    }
    let fields = fields(bytes);
    let Some((greeting, payloads)) = fields.split_first() else { return };
    let Ok(greeting) = login::greeting(greeting) else { return };
    for whole in [WholePassword::Withheld, WholePassword::Sealed, WholePassword::Clear] {
        let credentials = Credentials { user: "u", password: "p", database: "d", whole };
        let (mut login, ..) = Login::begin(credentials, &greeting, u32::MAX, &mut 1);
        for payload in payloads {
            let _ = login.take(payload);
        }
    }
}

/// A command and the parameters of an execution, as the server's end reads them.
pub fn command(bytes: &[u8]) {
    let understood = Command::parse(bytes);
    let types = bytes.as_chunks::<2>().0.to_vec();
    for count in [0, 1, 9] {
        if let Ok(Command::Execute(_, rest)) = understood {
            let _ = parameter::parse(rest, count, &mut types.clone());
        }
        let _ = parameter::parse(bytes, count, &mut types.clone());
        let _ = parameter::parse(bytes, count, &mut Vec::new());
    }
}

/// The payload of an answer, given to each reader of answers.
pub fn response(bytes: &[u8]) {
    let _ = (response::Ok::parse(bytes), response::parse_eof(bytes));
    let _ = (response::ServerError::parse(bytes), response::PrepareOk::parse(bytes));
    let _ = result_set::parse_column_count(bytes);
    for columns in [0, 1, 3, 300] {
        let _ = result_set::parse_text_row(bytes, columns);
    }
    let _ = FileRequest::parse(bytes).map(|request| request.is_for("rows"));
}

/// Compressed frames, whole and in pieces of a length given by the first byte; then the other bytes
/// packed and unpacked again.
pub fn compressed(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let length = 1 + usize::from(cut);
    assert_eq!(unpacked([bytes].into_iter()), unpacked(bytes.chunks(length)));
    let (mut frames, mut codec, mut packed) = (Frames::default(), Codec::default(), Vec::new());
    bytes.chunks(length).for_each(|part| frames.write(part, &mut codec, &mut packed));
    assert_eq!(unpacked([&packed[..]].into_iter()), Ok(bytes.to_vec()));
}

/// Messages of a PostgreSQL: as a reply, whole and in pieces of a length given by the first byte;
/// each also as a message of a login, an error, a row, a certificate, a SCRAM exchange.
pub fn postgres(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let mut scanner = postgres::scanner::Scanner::default();
    scanner.begin();
    let whole = scanner.feed(bytes);
    scanner.begin();
    let mut pieces = bytes.chunks(1 + usize::from(cut));
    let found = pieces.find_map(|piece| scanner.feed(piece).transpose()).transpose();
    let behind = pieces.flatten().copied().collect::<Vec<u8>>();
    let found = found.and_then(|outcome| scanner.feed(&behind).map(|_| outcome));
    let is_cut_behind = matches!(found, Err(postgres::scanner::ScanError::Trailing { .. }));
    assert!(whole.is_err() == found.is_err() || is_cut_behind);

    let mut login =
        postgres::login::Login::new("joe", "secret", Binding::None, WholePassword::Sealed);
    let mut scram = Scram::new("secret", Binding::NotOffered);
    let mut rest = bytes;
    while let Some((&[kind, a, b, c, d], behind)) = rest.split_first_chunk::<5>() {
        let length = (u32::from_be_bytes([a, b, c, d]) as usize).saturating_sub(4);
        let (payload, later) = behind.split_at(length.min(behind.len()));
        rest = later;
        let _ = login.take(kind, payload);
        let _ = Binding::of_certificate(payload);
        let _ = ServerError::parse(payload);
        if let Some(row) = postgres::message::row(payload) {
            assert!(row.iter().flatten().map(|value| value.len()).sum::<usize>() <= payload.len());
        }
        if scram.answer(payload).is_ok() {
            assert!(scram.check(b"v=AAAA").is_err());
        }
    }
}

/// The contents of the frames in `parts`, put together.
fn unpacked<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, FrameError> {
    let (mut frames, mut codec, mut contents) = (Frames::default(), Codec::default(), Vec::new());
    for mut rest in parts {
        while let Some(content) = frames.next(&mut rest, &mut codec)? {
            contents.extend_from_slice(content);
        }
        assert!(rest.is_empty());
    }
    Ok(contents)
}

/// Splits bytes into fields, each after its length in two little-endian bytes; the last may be
/// shorter.
fn fields(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut fields = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length));
        let (field, later) = behind.split_at(length.min(behind.len()));
        fields.push(field);
        rest = later;
    }
    fields
}
