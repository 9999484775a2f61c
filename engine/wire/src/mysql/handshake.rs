//! The opening messages of a session, read and written: the server's greeting, the client's answer,
//! and the server's request for another plugin or more data.

use super::packet::{begin_packet, end_packet};
use super::{Malformed, capability, cursor::Cursor, lenenc};

const PROTOCOL_VERSION: u8 = 10;
const SWITCH_FIRST: u8 = 0xfe;
const MORE_DATA_FIRST: u8 = 0x01;
/// Longest payload taken, as announced by the client; the server may have its own limit.
const PAYLOAD_LENGTH_MAX: u32 = 1 << 30;
/// Bytes of the nonce in the first part of the greeting; the rest is in the second.
const NONCE_FIRST_LENGTH: usize = 8;
/// Bytes of the nonce, the same for every plugin here.
pub const NONCE_LENGTH: usize = 20;

/// The server's greeting, version 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The version as the server spells it; MariaDB up to 10.11 puts `5.5.5-` before its own.
    pub server_version: String,
    /// The server's number for this session.
    pub connection_id: u32,
    /// Random bytes to mix passwords with.
    pub nonce: Vec<u8>,
    /// The server's offer, as bits of [`capability`].
    pub capabilities: u32,
    /// The server's default collation.
    pub collation: u8,
    /// Status flags.
    pub status: u16,
    /// The plugin for the nonce; empty when the server does not name it.
    pub plugin: String,
}

impl Handshake {
    /// Reads the greeting.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else, or of another protocol version.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("handshake", payload);
        cursor.expect(PROTOCOL_VERSION, "protocol version")?;
        let server_version = text(cursor.until_nul("server version")?);
        let connection_id = cursor.u32("connection id")?;
        let mut nonce = cursor.take(NONCE_FIRST_LENGTH, "nonce")?.to_vec();
        cursor.u8("filler")?;
        let low = cursor.u16("capabilities")?;
        let collation = cursor.u8("collation")?;
        let status = cursor.u16("status")?;
        let high = cursor.u16("capabilities")?;
        let nonce_length = usize::from(cursor.u8("length of the nonce")?);
        cursor.take(10, "reserved bytes")?;
        let second = nonce_length.saturating_sub(NONCE_FIRST_LENGTH).max(13);
        nonce.extend_from_slice(cursor.take(second, "second part of the nonce")?);
        nonce.truncate(NONCE_LENGTH);
        let capabilities = u32::from(high) << 16 | u32::from(low);
        let plugin = if capabilities & capability::PLUGIN_AUTH == 0 {
            String::new()
        } else {
            text(cursor.until_nul("plugin").unwrap_or(cursor.rest())) // some versions leave out the NUL
        };
        Ok(Self { server_version, connection_id, nonce, capabilities, collation, status, plugin })
    }

    /// Appends the greeting.
    ///
    /// # Panics
    /// When the nonce has not [`NONCE_LENGTH`] bytes.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        assert_eq!(self.nonce.len(), NONCE_LENGTH);
        let start = begin_packet(out, *sequence);
        out.push(PROTOCOL_VERSION);
        put_with_nul(out, self.server_version.as_bytes());
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        put_with_nul(out, &self.nonce[..NONCE_FIRST_LENGTH]);
        let [low0, low1, high0, high1] = self.capabilities.to_le_bytes();
        let [status0, status1] = self.status.to_le_bytes();
        let nonce_length = NONCE_LENGTH as u8 + 1;
        out.extend_from_slice(&[low0, low1, self.collation, status0, status1]);
        out.extend_from_slice(&[high0, high1, nonce_length]);
        out.extend_from_slice(&[0; 10]);
        put_with_nul(out, &self.nonce[NONCE_FIRST_LENGTH..]);
        put_with_nul(out, self.plugin.as_bytes());
        *sequence = end_packet(out, start);
    }
}

/// The client's answer to the greeting, in the form of 4.1 and newer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// The agreed bits of [`capability`]. They decide which fields below travel, and how.
    pub capabilities: u32,
    /// The collation of the session.
    pub collation: u8,
    /// The user's name.
    pub user: &'a [u8],
    /// The plugin's answer to the nonce.
    pub answer: &'a [u8],
    /// The current database; may be empty.
    pub database: &'a [u8],
    /// The plugin used for the answer; may be empty.
    pub plugin: &'a [u8],
}

impl<'a> HandshakeResponse<'a> {
    /// Reads the answer; the client's attributes are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else, or of a client older than 4.1.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("handshake response", payload);
        let capabilities = cursor.u32("capabilities")?;
        let has = |capability: u32| capabilities & capability != 0;
        if !has(capability::PROTOCOL_41) {
            return Err(cursor.malformed("capability PROTOCOL_41"));
        }
        cursor.u32("longest payload")?;
        let collation = cursor.u8("collation")?;
        cursor.take(23, "reserved bytes")?;
        let user = cursor.until_nul("user")?;
        let answer = if has(capability::PLUGIN_AUTH_LENENC_DATA) {
            cursor.string("authentication answer")?
        } else if has(capability::SECURE_CONNECTION) {
            let length = cursor.u8("length of the authentication answer")?;
            cursor.take(length.into(), "authentication answer")?
        } else {
            cursor.until_nul("authentication answer")?
        };
        let mut optional = |capability: u32, part| {
            if has(capability) { cursor.until_nul(part) } else { Ok(&[][..]) }
        };
        let database = optional(capability::CONNECT_WITH_DB, "database")?;
        let plugin = optional(capability::PLUGIN_AUTH, "plugin")?;
        Ok(Self { capabilities, collation, user, answer, database, plugin })
    }

    /// Appends the answer. The plugin's answer is at most 250 bytes long, because its length
    /// travels in a single byte.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        put_first_fields(out, self.capabilities, self.collation);
        put_with_nul(out, self.user);
        lenenc::write_string(out, self.answer);
        if self.capabilities & capability::CONNECT_WITH_DB != 0 {
            put_with_nul(out, self.database);
        }
        if self.capabilities & capability::PLUGIN_AUTH != 0 {
            put_with_nul(out, self.plugin);
        }
        *sequence = end_packet(out, start);
    }
}

/// Appends the client's wish to go on in TLS: the first fields of its answer, alone. The server
/// begins its handshake at once, and the whole answer follows inside.
pub fn write_tls_request(out: &mut Vec<u8>, sequence: &mut u8, capabilities: u32, collation: u8) {
    let start = begin_packet(out, *sequence);
    put_first_fields(out, capabilities, collation);
    *sequence = end_packet(out, start);
}

fn put_first_fields(out: &mut Vec<u8>, capabilities: u32, collation: u8) {
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&PAYLOAD_LENGTH_MAX.to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 23]);
}

/// The server's wish for an answer to another nonce by another plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The plugin to use; empty in the form of servers before 4.1.
    pub plugin: &'a [u8],
    /// The new nonce.
    pub nonce: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// Reads the wish.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("switch of the authentication plugin", payload);
        cursor.expect(SWITCH_FIRST, "first byte")?;
        if cursor.rest().is_empty() {
            return Ok(Self { plugin: b"", nonce: b"" });
        }
        let plugin = cursor.until_nul("plugin")?;
        let nonce = cursor.rest();
        Ok(Self { plugin, nonce: nonce.strip_suffix(&[0]).unwrap_or(nonce) })
    }

    /// Appends the wish.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        out.push(SWITCH_FIRST);
        put_with_nul(out, self.plugin);
        put_with_nul(out, self.nonce);
        *sequence = end_packet(out, start);
    }
}

/// Reads the data from a plugin's server half to its client half.
///
/// # Errors
/// [`Malformed`] when it is something else.
pub fn parse_more_data(payload: &[u8]) -> Result<&[u8], Malformed> {
    let mut cursor = Cursor::new("more authentication data", payload);
    cursor.expect(MORE_DATA_FIRST, "first byte")?;
    Ok(cursor.rest())
}

fn put_with_nul(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
