//! Length-encoded integers and strings: a single byte up to 250, otherwise a marker and 2, 3 or 8
//! bytes.

/// Marks a NULL column in a text row; it is no integer.
pub const NULL: u8 = 0xfb;
const TWO_BYTES: u8 = 0xfc;
const THREE_BYTES: u8 = 0xfd;
const EIGHT_BYTES: u8 = 0xfe;

/// Appends an integer in its shortest form.
pub fn write_integer(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(TWO_BYTES);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(THREE_BYTES);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(EIGHT_BYTES);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends the length of `text`, then `text`.
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    write_integer(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Takes an integer from the front of `bytes`; `None`, with `bytes` unchanged, when it is
/// incomplete or no integer.
pub fn take_integer(bytes: &mut &[u8]) -> Option<u64> {
    let (&marker, rest) = bytes.split_first()?;
    let width = match marker {
        0..=0xfa => {
            *bytes = rest;
            return Some(u64::from(marker));
        }
        TWO_BYTES => 2,
        THREE_BYTES => 3,
        EIGHT_BYTES => 8,
        _ => return None,
    };
    let mut value = [0; 8];
    value[..width].copy_from_slice(rest.get(..width)?);
    *bytes = &rest[width..];
    Some(u64::from_le_bytes(value))
}

/// Takes a string from the front of `bytes`; `None` when it is incomplete.
pub fn take_string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *bytes;
    let length = usize::try_from(take_integer(&mut rest)?).ok()?;
    let text = rest.get(..length)?;
    *bytes = &rest[length..];
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documented_borders() {
        let cases: [(u64, &[u8]); 6] = [
            (250, &[250]),
            (251, &[0xfc, 251, 0]),
            (0xffff, &[0xfc, 0xff, 0xff]),
            (0x1_0000, &[0xfd, 0, 0, 1]),
            (0xff_ffff, &[0xfd, 0xff, 0xff, 0xff]),
            (0x100_0000, &[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            write_integer(&mut out, value);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn markers_that_are_no_integer_are_refused() {
        assert_eq!(take_integer(&mut &[NULL, 1, 2][..]), None);
        assert_eq!(take_integer(&mut &[0xff, 1, 2][..]), None);
        assert_eq!(take_integer(&mut &[][..]), None);
    }

    #[test]
    fn a_string_longer_than_its_bytes_is_refused() {
        assert_eq!(take_string(&mut &b"\x05four"[..]), None);
        assert_eq!(take_string(&mut &[0xfe, 255, 255, 255, 255, 255, 255, 255, 255][..]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value: u64, text in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut out = Vec::new();
            write_integer(&mut out, value);
            write_string(&mut out, &text);
            let mut bytes = &out[..];
            prop_assert_eq!(take_integer(&mut bytes), Some(value));
            prop_assert_eq!(take_string(&mut bytes), Some(&text[..]));
            prop_assert!(bytes.is_empty());
        }
    }
}
