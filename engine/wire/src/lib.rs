//! Bytes to messages of database protocols and back, both ends; no socket, no clock, no async.
//!
//! The owner of a socket hands bytes in and takes messages out. So the protocol is tested without a
//! server, the reactor serves every protocol, and the reference server shares the code. Foreign
//! bytes never cause a panic: unreadable bytes are an error with the bytes found.
pub mod kept;
pub mod mysql;
pub mod postgres;

use crate::mysql::auth::PublicKey;

/// The form in which a server without the password's hash may have the password itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholePassword<'a> {
    /// Not at all: others can read the connection, or answer in the server's place.
    Withheld,
    /// Encrypted with the key that the server sends: others can read the connection.
    Sealed,
    /// Encrypted with this key, whose owner alone can read it.
    SealedFor(&'a PublicKey),
    /// In clear: others cannot read the connection.
    Clear,
}

/// Counts of a reply. Rows and affected rows are sums over all its results, the rest is of the
/// last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows changed, as the server counts them.
    pub affected_rows: u64,
    /// Key given by MySQL to the row of an INSERT, else 0.
    pub last_insert_id: u64,
    /// Rows received.
    pub rows: u64,
    /// Columns of the last result; 0 when it was no result set.
    pub columns: u64,
    /// Results in the reply: above 1 only for a text of several statements.
    pub results: u32,
    /// Bytes of the whole reply, headers included.
    pub bytes: u64,
}

/// The outcome of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<ServerError> {
    /// The server carried the request out.
    Done(Summary),
    /// The server refused; the session goes on, unless the error was fatal.
    Failed(ServerError),
}

/// A value bound to a placeholder of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    BigInt(i64),
    /// A double.
    Double(f64),
    /// A string, in the session's character set.
    Text(&'a [u8]),
}

/// Appends a number in decimal digits. Requests are full of them, and `write!` calls through
/// several layers for each.
pub fn decimal(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let (mut start, mut rest) = (digits.len(), number.unsigned_abs());
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_number_has_its_digits() {
        for number in [0, 7, -7, 10, 4_294_967_295, -1_234_567_890, i64::MIN, i64::MAX] {
            let mut out = b"=".to_vec();
            super::decimal(&mut out, number);
            assert_eq!(out, format!("={number}").as_bytes());
        }
    }
}
