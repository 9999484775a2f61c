//! Enters a session: the server's greeting, TLS if wanted, the login inside it, then compression.

use std::io::{self, Write};

use dbdyno_wire::mysql::capability::{self, COMPRESS, DEPRECATE_EOF, SSL};
use dbdyno_wire::mysql::handshake::Handshake;
use dbdyno_wire::mysql::login::{self, Credentials, Login as Exchange, LoginError, Step};
use dbdyno_wire::mysql::packet::{begin_packet, end_packet};

use super::error::Problem;
use super::stream::Stream;
use super::{Endpoint, LOGIN_LENGTH_MAX, Login, Transport, frame};
use crate::session::tls::{Tls, TlsMode, TlsProblem};

/// Most answers of a server to a login. Another plugin, a cold cache, a key and OK are four.
const LOGIN_TURNS_MAX: usize = 16;

/// The terms agreed in the login.
pub(super) struct Entered {
    pub(super) server_version: String,
    pub(super) connection_id: u32,
    pub(super) deprecate_eof: bool,
}

/// Logs in over `stream`, encrypted and compressed as `transport` asks. Further `wanted` bits of
/// [`capability`] are agreed where the server offers them.
pub(super) fn enter(
    stream: &mut Stream,
    endpoint: &Endpoint,
    login: &Login,
    transport: &Transport,
    wanted: u32,
) -> Result<Entered, Problem> {
    let (mut sequence, mut payload) = (0, Vec::new());
    frame::read_payload(stream, &mut sequence, LOGIN_LENGTH_MAX, &mut payload)?;
    let greeting = login::greeting(&payload)?;
    let compression = if transport.compression { COMPRESS } else { 0 };
    if greeting.capabilities & compression != compression {
        return Err(Problem::NoCompression);
    }
    let mut wanted = wanted | compression;
    let mut credentials = Credentials {
        user: &login.user,
        password: &login.password,
        database: &login.database,
        whole: transport.whole_password(endpoint, stream),
    };
    if let Some(tls) = tls_for(stream, &greeting, transport)? {
        wanted |= SSL;
        stream.write_all(&login::tls_request(credentials, &greeting, wanted, &mut sequence))?;
        stream.link.encrypt(tls.handshake(endpoint.host(), &mut stream.socket)?);
        credentials.whole = transport.whole_password(endpoint, stream);
    }
    let (exchange, agreed, packet) = Exchange::begin(credentials, &greeting, wanted, &mut sequence);
    stream.write_all(&packet)?;
    converse(stream, exchange, sequence)?;
    if agreed & capability::COMPRESS != 0 {
        stream.link.compress();
    }
    Ok(Entered {
        server_version: version_of(&greeting.server_version).to_owned(),
        connection_id: greeting.connection_id,
        deprecate_eof: agreed & DEPRECATE_EOF != 0,
    })
}

/// The TLS to use with this server. `preferred` leaves a Unix socket unencrypted.
fn tls_for<'a>(
    stream: &Stream,
    greeting: &Handshake,
    transport: &'a Transport,
) -> Result<Option<&'a Tls>, Problem> {
    let Some(tls) = &transport.tls else { return Ok(None) };
    let is_preferred = tls.mode == TlsMode::Preferred;
    match greeting.capabilities & SSL != 0 {
        true if is_preferred && stream.socket.socket.is_private() => Ok(None),
        true => Ok(Some(tls)),
        false if is_preferred => Ok(None),
        false => Err(TlsProblem::NotOffered.into()),
    }
}

/// Takes the server's answers until it accepts the session.
fn converse(
    stream: &mut Stream,
    mut exchange: Exchange<'_>,
    mut sequence: u8,
) -> Result<(), Problem> {
    let mut payload = Vec::new();
    for _ in 0..LOGIN_TURNS_MAX {
        frame::read_payload(stream, &mut sequence, LOGIN_LENGTH_MAX, &mut payload)?;
        match exchange.take(&payload)? {
            Step::Done => return Ok(()),
            Step::Wait => {}
            Step::Send(payload) => sequence = send_payload(stream, &payload, sequence)?,
        }
    }
    Err(Problem::Login(LoginError::Endless))
}

fn send_payload(stream: &mut Stream, payload: &[u8], sequence: u8) -> io::Result<u8> {
    let mut packet = Vec::new();
    let start = begin_packet(&mut packet, sequence);
    packet.extend_from_slice(payload);
    let next = end_packet(&mut packet, start);
    stream.write_all(&packet)?;
    Ok(next)
}

/// The version without MariaDB's prefix: before 11 it sends `5.5.5-10.6.1-MariaDB`, to pass the
/// checks of old replicas.
fn version_of(spelled: &str) -> &str {
    match spelled.strip_prefix("5.5.5-") {
        Some(own) if own.starts_with(|first: char| first.is_ascii_digit()) => own,
        _ => spelled,
    }
}
