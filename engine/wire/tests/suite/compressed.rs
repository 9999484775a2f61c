//! Compressed frames: written and read back at any cut, and refused when they lie.

use dbdyno_wire::mysql::compressed::{
    CONTENT_LENGTH_MAX, Codec, FRAME_HEADER_LENGTH, FrameError, Frames,
};
use proptest::prelude::*;

/// Frames of a request with `parts`, each written separately.
fn packed(parts: &[&[u8]]) -> Vec<u8> {
    let (mut frames, mut codec, mut out) = (Frames::default(), Codec::default(), Vec::new());
    parts.iter().for_each(|part| frames.write(part, &mut codec, &mut out));
    out
}

/// The contents of the frames in `bytes`, fed in pieces of `piece` bytes.
fn unpacked(bytes: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, FrameError> {
    let (mut frames, mut codec, mut contents) = (Frames::default(), Codec::default(), Vec::new());
    for mut rest in bytes.chunks(piece) {
        while let Some(content) = frames.next(&mut rest, &mut codec)? {
            contents.push(content.to_vec());
        }
    }
    Ok(contents)
}

#[test]
fn short_content_travels_as_it_is() {
    let bytes = packed(&[b"\x01\0\0\0\x0e"]);
    assert_eq!(bytes, b"\x05\0\0\0\0\0\0\x01\0\0\0\x0e");
    assert_eq!(unpacked(&bytes, 99), Ok(vec![b"\x01\0\0\0\x0e".to_vec()]));
}

#[test]
fn long_content_is_compressed_where_that_helps() {
    let same = [7; 1000];
    let bytes = packed(&[&same]);
    assert!(bytes.len() < 100);
    assert_eq!(bytes[4..7], [0xe8, 3, 0], "the length before compression");
    let every_byte_once: Vec<u8> = (0..=255).collect();
    let bytes = packed(&[&every_byte_once]);
    assert_eq!((bytes.len(), &bytes[4..7]), (FRAME_HEADER_LENGTH + 256, &[0, 0, 0][..]));
}

#[test]
fn content_beyond_the_longest_frame_goes_on_in_the_next() {
    let long: Vec<u8> = (0..CONTENT_LENGTH_MAX + 9).map(|i| (i / 1000) as u8).collect();
    let contents = unpacked(&packed(&[&long, b"x"]), 1 << 20).expect("frames");
    let lengths: Vec<usize> = contents.iter().map(Vec::len).collect();
    assert_eq!(lengths, [CONTENT_LENGTH_MAX, 9, 1]);
    assert!(contents.concat().starts_with(&long));
}

#[test]
fn frames_are_numbered_anew_with_each_request() {
    let (mut frames, mut codec, mut out) = (Frames::default(), Codec::default(), Vec::new());
    frames.write(b"a", &mut codec, &mut out);
    frames.write(b"b", &mut codec, &mut out);
    frames.begin();
    frames.write(b"c", &mut codec, &mut out);
    let numbers: Vec<u8> = out.chunks(FRAME_HEADER_LENGTH + 1).map(|frame| frame[3]).collect();
    assert_eq!(numbers, [0, 1, 0]);
    let found = unpacked(&out, 99).expect_err("a number again");
    assert_eq!(found, FrameError::Sequence { expected: 2, found: 0 });
}

#[test]
fn a_frame_that_lies_about_its_content_is_refused() {
    let honest = packed(&[&[7; 1000]]);
    let with_length = |length: u32| {
        let mut bytes = honest.clone();
        bytes[4..7].copy_from_slice(&length.to_le_bytes()[..3]);
        unpacked(&bytes, 99).expect_err("a lie")
    };
    assert!(matches!(with_length(999), FrameError::Length { announced: 999, found: 1000.. }));
    assert_eq!(with_length(1001), FrameError::Length { announced: 1001, found: 1000 });
    let announced = CONTENT_LENGTH_MAX;
    let text = with_length(announced as u32).to_string();
    assert_eq!(text, format!("wanted {announced} bytes in a compressed frame, found 1000 bytes"));
    assert!(matches!(with_length(1), FrameError::Length { announced: 1, .. }));
    let mut longer = honest.clone();
    longer[0] += 1;
    longer.push(0);
    assert_eq!(unpacked(&longer, 99), Err(FrameError::Content), "bytes after the stream");
    let mut cut = honest[..honest.len() - 1].to_vec();
    cut[0] -= 1;
    assert_eq!(unpacked(&cut, 99), Err(FrameError::Content), "a stream that does not end");
    assert_eq!(unpacked(b"\x02\0\0\0\x09\0\0ab", 99), Err(FrameError::Content));
    assert_eq!(unpacked(b"\0\0\0\0\x09\0\0", 99), Err(FrameError::Content));
}

#[test]
fn an_empty_frame_holds_nothing() {
    assert_eq!(unpacked(b"\0\0\0\0\0\0\0\x01\0\0\x01\0\0\0x", 99), Ok(vec![vec![], b"x".to_vec()]));
    let endless: Vec<u8> = (0..=255).flat_map(|number| [0, 0, 0, number, 0, 0, 0]).collect();
    for piece in [3, 7, 99] {
        assert_eq!(unpacked(&endless, piece), Err(FrameError::Empty));
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_at_any_cut(
        parts in prop::collection::vec((any::<u8>(), 0_usize..3000), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1_usize..2000,
    ) {
        let mut parts: Vec<Vec<u8>> =
            parts.into_iter().map(|(byte, length)| vec![byte; length]).collect();
        parts.push(noise);
        let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let contents = unpacked(&packed(&borrowed), piece).expect("frames");
        prop_assert_eq!(contents.concat(), parts.concat());
    }

    #[test]
    fn a_changed_byte_is_survived(at in 0_usize..60, to in any::<u8>(), piece in 1_usize..99) {
        let mut bytes = packed(&[&b"a row, ".repeat(40), b"short", &[0; 90]]);
        let at = at % bytes.len();
        bytes[at] = to;
        prop_assert_eq!(unpacked(&bytes, piece).is_err(), unpacked(&bytes, 9999).is_err());
    }
}
