//! Any bytes, cut at any place: the scanner refuses or follows them, and never panics.
#![no_main]

use dbdyno_wire::mysql::scanner::{ReplyShape, ScanError, Scanner};
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
    let mut parts = parts.iter();
    let found = parts.find_map(|part| scanner.feed(part).transpose()).transpose();
    let behind: Vec<u8> = parts.flatten().copied().collect();
    let found = found.and_then(|outcome| scanner.feed(&behind).map(|_| outcome));
    // Last words behind a reply are refused when they are cut.
    let is_cut_behind = matches!(found, Err(ScanError::Trailing { .. }));
    assert!(expected.is_err() == found.is_err() || is_cut_behind);
});
