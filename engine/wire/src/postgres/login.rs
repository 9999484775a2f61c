//! Opens a session, from the first message to ReadyForQuery. It holds no socket: messages go in,
//! messages come out.

use super::message::{self, ServerError};
use super::scram::{Binding, SCRAM, SCRAM_PLUS, Scram, ScramError, md5_password};
use crate::WholePassword;

/// Error of a login.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server refused.
    #[error("{0}")]
    Refused(ServerError),
    /// The server asks for an unknown authentication.
    #[error("an authentication that is not known here: {0}")]
    Unknown(String),
    /// The server asks for the password itself, but others could read it.
    #[error("a server that asks for the password in the clear")]
    InTheClear,
    /// The exchange of proofs failed.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// A message out of place in a login.
    #[error("a message of type 0x{0:02x}, which is none of a login")]
    Message(u8),
}

/// The step after a message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait for the next message.
    Wait,
    /// Send these bytes.
    Send(Vec<u8>),
    /// The session is open.
    Open,
}

/// A login, message by message.
pub struct Login {
    user: String,
    password: String,
    binding: Binding,
    sends_clear: bool,
    scram: Option<Scram>,
    /// True once the server has accepted the login.
    is_accepted: bool,
    /// The server's version, as the server spells it.
    pub server_version: String,
    /// The server's number for this session, and the secret for canceling its query from another
    /// connection.
    pub backend: (u32, u32),
}

impl Login {
    /// A login with channel binding `binding`. PostgreSQL takes the password itself only in clear,
    /// and gets it only if `whole` is `Clear`.
    #[must_use]
    pub fn new(user: &str, password: &str, binding: Binding, whole: WholePassword<'_>) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
            binding,
            sends_clear: whole == WholePassword::Clear,
            scram: None,
            is_accepted: false,
            server_version: String::new(),
            backend: (0, 0),
        }
    }

    /// The first message.
    #[must_use]
    pub fn start(&self, database: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let parameters = [
            ("user", self.user.as_str()),
            ("database", database),
            ("application_name", "dbdyno"),
            ("client_encoding", "UTF8"),
        ];
        message::startup(&mut out, &parameters);
        out
    }

    /// Takes a message of the server and gives the next step.
    ///
    /// # Errors
    /// [`LoginError`] when the server refuses, or asks for an answer it shall not get.
    pub fn take(&mut self, kind: u8, payload: &[u8]) -> Result<Step, LoginError> {
        match kind {
            b'R' => self.authenticate(payload),
            b'E' => Err(LoginError::Refused(ServerError::parse(payload))),
            b'S' => {
                let mut parts = payload.split(|&byte| byte == 0);
                if parts.next() == Some(b"server_version") {
                    let version = parts.next().unwrap_or_default();
                    self.server_version = String::from_utf8_lossy(version).into_owned();
                }
                Ok(Step::Wait)
            }
            b'K' => {
                let word = |at: usize| {
                    payload.get(at..at + 4).map_or(0, |bytes| {
                        u32::from_be_bytes(bytes.try_into().expect("four bytes"))
                    })
                };
                self.backend = (word(0), word(4));
                Ok(Step::Wait)
            }
            b'N' | b'v' => Ok(Step::Wait),
            b'Z' if self.is_accepted => Ok(Step::Open),
            other => Err(LoginError::Message(other)),
        }
    }

    fn authenticate(&mut self, payload: &[u8]) -> Result<Step, LoginError> {
        let (number, rest) = payload
            .split_first_chunk()
            .map_or((u32::MAX, &[][..]), |(number, rest)| (u32::from_be_bytes(*number), rest));
        let mut out = Vec::new();
        match number {
            0 => {
                // A server must end a SCRAM exchange, once begun, with its own proof.
                self.is_accepted = self.scram.is_none();
                if !self.is_accepted {
                    return Err(ScramError::Signature.into());
                }
                return Ok(Step::Wait);
            }
            3 if !self.sends_clear => return Err(LoginError::InTheClear),
            3 => message::password(&mut out, self.password.as_bytes()),
            5 => {
                let salt = rest.try_into().map_err(|_| LoginError::Message(b'R'))?;
                let proof = md5_password(&self.user, &self.password, salt);
                message::password(&mut out, proof.as_bytes());
            }
            10 => self.begin_scram(rest, &mut out)?,
            11 => {
                let scram = self.scram.as_mut().ok_or(LoginError::Message(b'R'))?;
                message::sasl_next(&mut out, scram.answer(rest)?.as_bytes());
            }
            12 => {
                self.scram.take().ok_or(LoginError::Message(b'R'))?.check(rest)?;
                return Ok(Step::Wait);
            }
            other => return Err(LoginError::Unknown(name_of(other))),
        }
        Ok(Step::Send(out))
    }

    /// Chooses among the server's mechanisms, each ended by a zero.
    fn begin_scram(&mut self, offered: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        let offers =
            |name: &str| offered.split(|&byte| byte == 0).any(|one| one == name.as_bytes());
        let binding = match &self.binding {
            Binding::Certificate(_) if offers(SCRAM_PLUS) => self.binding.clone(),
            Binding::Certificate(_) if offers(SCRAM) => Binding::NotOffered,
            _ if offers(SCRAM) => Binding::None,
            _ => {
                let names = String::from_utf8_lossy(offered).replace('\0', " ");
                return Err(LoginError::Unknown(names.trim().to_owned()));
            }
        };
        let mechanism = binding.mechanism();
        let scram = Scram::new(&self.password, binding);
        message::sasl_first(out, mechanism, scram.first().as_bytes());
        self.scram = Some(scram);
        Ok(())
    }
}

fn name_of(number: u32) -> String {
    match number {
        2 => "Kerberos".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("number {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(is_private: bool) -> Login {
        let whole = if is_private { WholePassword::Clear } else { WholePassword::Sealed };
        Login::new("joe", "secret", Binding::None, whole)
    }

    fn asks(number: u32, rest: &[u8]) -> Vec<u8> {
        [&number.to_be_bytes()[..], rest].concat()
    }

    #[test]
    fn a_trusting_server_lets_in_and_says_what_it_is() {
        let mut login = login(false);
        assert_eq!(login.take(b'R', &asks(0, b"")), Ok(Step::Wait));
        assert_eq!(login.take(b'S', b"server_version\x0015.18\0"), Ok(Step::Wait));
        assert_eq!(login.take(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]), Ok(Step::Wait));
        assert_eq!(login.take(b'Z', b"I"), Ok(Step::Open));
        assert_eq!((&login.server_version[..], login.backend), ("15.18", (7, 9)));
    }

    #[test]
    fn the_password_goes_in_the_clear_only_where_nobody_reads_it() {
        assert_eq!(login(false).take(b'R', &asks(3, b"")), Err(LoginError::InTheClear));
        let sent = login(true).take(b'R', &asks(3, b""));
        assert_eq!(sent, Ok(Step::Send(b"p\0\0\0\x0bsecret\0".to_vec())));
    }

    #[test]
    fn a_server_that_skips_its_own_proof_is_refused() {
        let mut login = login(false);
        let sent = login.take(b'R', &asks(10, b"SCRAM-SHA-256\0\0"));
        assert!(matches!(sent, Ok(Step::Send(_))));
        let skipped = login.take(b'R', &asks(0, b""));
        assert_eq!(skipped, Err(LoginError::Scram(ScramError::Signature)));
    }

    #[test]
    fn what_is_not_known_is_told_by_name() {
        let unknown = |name: &str| Err(LoginError::Unknown(name.to_owned()));
        assert_eq!(login(true).take(b'R', &asks(7, b"")), unknown("GSSAPI"));
        assert_eq!(login(true).take(b'R', &asks(10, b"OTHER\0\0")), unknown("OTHER"));
        assert_eq!(login(true).take(b'Z', b"I"), Err(LoginError::Message(b'Z')));
        assert_eq!(login(true).take(b'R', &asks(11, b"")), Err(LoginError::Message(b'R')));
    }
}
