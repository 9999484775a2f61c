//! Any bytes, cut at any place: the scanner refuses or follows them, and never panics.
#![no_main]

use dbdyno_wire::mysql::scanner::{ReplyShape, Scanner};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u8, Vec<Vec<u8>>)| {
    let (deprecate_eof, shape, parts) = input;
    let shapes = [ReplyShape::Text, ReplyShape::Binary, ReplyShape::Prepare];
    let shape = shapes[usize::from(shape) % shapes.len()];
    let mut whole = Scanner::new(deprecate_eof);
    whole.begin(shape);
    let expected = whole.feed(&parts.concat());
    let mut scanner = Scanner::new(deprecate_eof);
    scanner.begin(shape);
    let found: Result<Vec<_>, _> = parts.iter().map(|part| scanner.feed(part)).collect();
    assert_eq!(expected.is_err(), found.is_err());
});
