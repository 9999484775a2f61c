//! Any bytes, cut at any place: compressed frames are refused or read, alike whole and in pieces, and
//! never panic.
#![no_main]

use dbdyno_wire::mysql::compressed::{Codec, FrameError, Frames};
use libfuzzer_sys::fuzz_target;

fn unpack<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, FrameError> {
    let (mut frames, mut codec, mut contents) = (Frames::default(), Codec::default(), Vec::new());
    for mut rest in parts {
        while let Some(content) = frames.next(&mut rest, &mut codec)? {
            contents.extend_from_slice(content);
        }
    }
    Ok(contents)
}

fuzz_target!(|parts: Vec<Vec<u8>>| {
    let whole = parts.concat();
    assert_eq!(unpack([&whole[..]].into_iter()), unpack(parts.iter().map(Vec::as_slice)));
    let (mut frames, mut codec, mut packed) = (Frames::default(), Codec::default(), Vec::new());
    parts.iter().for_each(|part| frames.write(part, &mut codec, &mut packed));
    assert_eq!(unpack([&packed[..]].into_iter()), Ok(whole));
});
