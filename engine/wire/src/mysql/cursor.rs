//! Reads a payload from front to back; an error names the missing part.

use super::{Malformed, lenenc};

/// A place in a payload, and the name of the message it should hold.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    message: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { bytes, message }
    }

    pub(super) const fn malformed(&self, part: &'static str) -> Malformed {
        Malformed { message: self.message, part }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn take(&mut self, count: usize, part: &'static str) -> Result<&'a [u8], Malformed> {
        let taken = self.bytes.get(..count).ok_or_else(|| self.malformed(part))?;
        self.bytes = &self.bytes[count..];
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<[u8; N], Malformed> {
        let (taken, rest) =
            self.bytes.split_first_chunk::<N>().ok_or_else(|| self.malformed(part))?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, part: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(part).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, part: &'static str) -> Result<u16, Malformed> {
        self.array(part).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, part: &'static str) -> Result<u32, Malformed> {
        self.array(part).map(u32::from_le_bytes)
    }

    pub(super) fn integer(&mut self, part: &'static str) -> Result<u64, Malformed> {
        lenenc::take_integer(&mut self.bytes).ok_or_else(|| self.malformed(part))
    }

    pub(super) fn string(&mut self, part: &'static str) -> Result<&'a [u8], Malformed> {
        lenenc::take_string(&mut self.bytes).ok_or_else(|| self.malformed(part))
    }

    /// The bytes before the next NUL; the NUL is skipped.
    pub(super) fn until_nul(&mut self, part: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.bytes.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| self.malformed(part))?;
        let taken = &self.bytes[..end];
        self.bytes = &self.bytes[end + 1..];
        Ok(taken)
    }

    pub(super) fn expect(&mut self, byte: u8, part: &'static str) -> Result<(), Malformed> {
        if self.u8(part)? == byte { Ok(()) } else { Err(self.malformed(part)) }
    }
}
