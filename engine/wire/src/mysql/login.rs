//! The client's login as a state machine: payloads of the server in, payloads to send out.
//!
//! It handles every turn of a server (another plugin, a cold password cache, a key), so the owner
//! of the socket only reads and writes packets.

use super::auth::{self, Plugin, PublicKey};
use super::handshake::{
    AuthSwitch, Handshake, HandshakeResponse, parse_more_data, write_tls_request,
};
use super::response::{EOF, ERR, OK, ServerError};
use super::{Malformed, capability};
use crate::WholePassword;
use std::fmt;

const UTF8MB4_GENERAL_CI: u8 = 45;

/// User, password and database of a login, and the form in which the password may travel.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The password; may be empty.
    pub password: &'a str,
    /// The database to begin in; may be empty.
    pub database: &'a str,
    /// The form in which the server may have the password itself.
    pub whole: WholePassword<'a>,
}

/// The next step of a login.
#[derive(Clone, PartialEq, Eq)]
pub enum Step {
    /// Send this payload, then take the server's next payload.
    Send(Vec<u8>),
    /// Take the server's next payload.
    Wait,
    /// The session is open.
    Done,
}

/// Shows only the length of a payload, because it may be the password.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(payload) => write!(f, "Send({} bytes)", payload.len()),
            Self::Wait => f.write_str("Wait"),
            Self::Done => f.write_str("Done"),
        }
    }
}

/// Error of a login.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server refuses.
    #[error("the server refuses the session with {0}")]
    Refused(ServerError),
    /// The server speaks something else.
    #[error("the server does not speak MySQL: {0}")]
    Malformed(#[from] Malformed),
    /// The server lacks the capabilities of every server since 4.1.
    #[error("the server is older than MySQL 4.1")]
    TooOld,
    /// The account needs an unknown plugin.
    #[error("the account needs the authentication plugin {0:?}")]
    UnknownPlugin(String),
    /// The server's public key cannot encrypt the password.
    #[error("the server's public key cannot encrypt the password")]
    Key,
    /// The server asks for the password itself, but anybody could answer in its place.
    #[error("a server that asks for the whole password without TLS")]
    Withheld,
    /// The server keeps asking, and neither accepts nor refuses.
    #[error("a login that does not come to an end")]
    Endless,
}

/// The client's half of opening a session.
pub struct Login<'a> {
    credentials: Credentials<'a>,
    nonce: Vec<u8>,
    plugin: Plugin,
}

/// Reads the server's first payload.
///
/// # Errors
/// [`LoginError`] when the server refuses, or speaks another protocol.
pub fn greeting(payload: &[u8]) -> Result<Handshake, LoginError> {
    if payload.first() == Some(&ERR) {
        return Err(LoginError::Refused(ServerError::parse(payload)?));
    }
    let greeting = Handshake::parse(payload)?;
    if greeting.capabilities & capability::REQUIRED != capability::REQUIRED {
        return Err(LoginError::TooOld);
    }
    Ok(greeting)
}

/// The packet to switch to TLS; advances `sequence`. [`Login::begin`] comes next, inside TLS, with
/// the same wishes, because some servers go by the first packet and others by the second.
#[must_use]
pub fn tls_request(
    credentials: Credentials<'_>,
    greeting: &Handshake,
    wanted: u32,
    sequence: &mut u8,
) -> Vec<u8> {
    let mut packet = Vec::new();
    let agreed = agreed(credentials, greeting, wanted);
    write_tls_request(&mut packet, sequence, agreed, UTF8MB4_GENERAL_CI);
    packet
}

fn agreed(credentials: Credentials<'_>, greeting: &Handshake, wanted: u32) -> u32 {
    let database = if credentials.database.is_empty() { 0 } else { capability::CONNECT_WITH_DB };
    greeting.capabilities & (capability::CLIENT | database | wanted)
}

impl<'a> Login<'a> {
    /// Answers the greeting. Gives the state machine, the agreed bits of [`capability`], and a
    /// whole packet to send, numbered `sequence`, which is advanced.
    ///
    /// `wanted` bits are agreed beside [`capability::CLIENT`], where the server offers them.
    #[must_use]
    pub fn begin(
        credentials: Credentials<'a>,
        greeting: &Handshake,
        wanted: u32,
        sequence: &mut u8,
    ) -> (Self, u32, Vec<u8>) {
        let plugin =
            Plugin::from_name(greeting.plugin.as_bytes()).unwrap_or(Plugin::NativePassword);
        let agreed = agreed(credentials, greeting, wanted);
        let login = Self { credentials, nonce: greeting.nonce.clone(), plugin };
        let packet = login.response(agreed, sequence);
        (login, agreed, packet)
    }

    fn response(&self, capabilities: u32, sequence: &mut u8) -> Vec<u8> {
        let mut packet = Vec::new();
        HandshakeResponse {
            capabilities,
            collation: UTF8MB4_GENERAL_CI,
            user: self.credentials.user.as_bytes(),
            answer: &self.answer(),
            database: self.credentials.database.as_bytes(),
            plugin: self.plugin.name().as_bytes(),
        }
        .write(&mut packet, sequence);
        packet
    }

    fn answer(&self) -> Vec<u8> {
        self.plugin.answer(self.credentials.password.as_bytes(), &self.nonce)
    }

    /// Takes the server's next payload.
    ///
    /// # Errors
    /// [`LoginError`] when the server refuses, or asks for an answer the client cannot give.
    pub fn take(&mut self, payload: &[u8]) -> Result<Step, LoginError> {
        match payload.first() {
            Some(&OK) => Ok(Step::Done),
            Some(&ERR) => Err(LoginError::Refused(ServerError::parse(payload)?)),
            Some(&EOF) => self.switch(AuthSwitch::parse(payload)?),
            _ => self.take_more(parse_more_data(payload)?),
        }
    }

    fn switch(&mut self, wish: AuthSwitch<'_>) -> Result<Step, LoginError> {
        self.plugin = Plugin::from_name(wish.plugin).ok_or_else(|| {
            let name = if wish.plugin.is_empty() { b"mysql_old_password" } else { wish.plugin };
            LoginError::UnknownPlugin(String::from_utf8_lossy(name).into_owned())
        })?;
        self.nonce = wish.nonce.to_vec();
        Ok(Step::Send(self.answer()))
    }

    fn take_more(&self, data: &[u8]) -> Result<Step, LoginError> {
        let Credentials { password, whole, .. } = self.credentials;
        if self.plugin == Plugin::NativePassword {
            let part = "place: mysql_native_password has none";
            return Err(Malformed { message: "more authentication data", part }.into());
        }
        match (data, whole) {
            ([auth::CACHING_SHA2_FOUND], _) => Ok(Step::Wait),
            (_, WholePassword::Withheld) => Err(LoginError::Withheld),
            (_, WholePassword::SealedFor(key)) => self.seal(key),
            ([auth::CACHING_SHA2_FULL], WholePassword::Clear) => {
                Ok(Step::Send(password.bytes().chain([0]).collect()))
            }
            ([auth::CACHING_SHA2_FULL], WholePassword::Sealed) => {
                Ok(Step::Send(vec![auth::CACHING_SHA2_KEY_REQUEST]))
            }
            (pem, _) => self.seal(&PublicKey::parse(pem).map_err(|_| LoginError::Key)?),
        }
    }

    fn seal(&self, key: &PublicKey) -> Result<Step, LoginError> {
        let sealed = key.seal(self.credentials.password.as_bytes(), &self.nonce);
        sealed.map(Step::Send).map_err(|_| LoginError::Key)
    }
}
