//! Login at the reference server: a single user and password, `mysql_native_password`.

use std::io::{self, Read, Write};

use dbdyno_wire::mysql::auth::Plugin;
use dbdyno_wire::mysql::capability;
use dbdyno_wire::mysql::handshake::{AuthSwitch, Handshake, HandshakeResponse, NONCE_LENGTH};
use dbdyno_wire::mysql::response::{self, STATUS_AUTOCOMMIT, ServerError};

use super::MESSAGE_LENGTH_MAX;
use super::script::Script;
use crate::session::frame;

const UTF8MB4_GENERAL_CI: u8 = 45;
const PLUGIN: Plugin = Plugin::NativePassword;

/// Opens a session; returns the agreed capabilities, or `None` after a refusal.
pub(super) fn accept(
    script: &Script,
    connection_id: u32,
    reader: &mut impl Read,
    writer: &mut impl Write,
) -> io::Result<Option<u32>> {
    let greeting = greeting(script, connection_id);
    let (mut out, mut sequence, mut payload) = (Vec::new(), 0, Vec::new());
    greeting.write(&mut out, &mut sequence);
    writer.write_all(&out)?;
    frame::read_payload(reader, &mut sequence, MESSAGE_LENGTH_MAX, &mut payload)?;
    let response = HandshakeResponse::parse(&payload).map_err(io::Error::other)?;
    let mut answer = response.answer.to_vec();
    if !response.plugin.is_empty() && response.plugin != PLUGIN.name().as_bytes() {
        out.clear();
        AuthSwitch { plugin: PLUGIN.name().as_bytes(), nonce: &greeting.nonce }
            .write(&mut out, &mut sequence);
        writer.write_all(&out)?;
        frame::read_payload(reader, &mut sequence, MESSAGE_LENGTH_MAX, &mut answer)?;
    }
    let accepted = response.user == script.user.as_bytes()
        && answer == PLUGIN.answer(script.password.as_bytes(), &greeting.nonce);
    writer.write_all(&verdict(accepted, sequence))?;
    Ok(accepted.then_some(response.capabilities & greeting.capabilities))
}

/// Greeting packet; a server without a password check may send the same packet to all clients.
pub(super) fn greeting_packet(script: &Script) -> Vec<u8> {
    let mut out = Vec::new();
    greeting(script, 1).write(&mut out, &mut 0);
    out
}

fn greeting(script: &Script, connection_id: u32) -> Handshake {
    let hidden = if script.deprecate_eof { 0 } else { capability::DEPRECATE_EOF };
    Handshake {
        server_version: script.server_version.clone(),
        connection_id,
        nonce: nonce_of(connection_id).to_vec(),
        capabilities: capability::SERVER & !hidden,
        collation: UTF8MB4_GENERAL_CI,
        status: STATUS_AUTOCOMMIT,
        plugin: PLUGIN.name().into(),
    }
}

fn verdict(accepted: bool, mut sequence: u8) -> Vec<u8> {
    let mut out = Vec::new();
    if accepted {
        let ok = response::Ok { status: STATUS_AUTOCOMMIT, ..response::Ok::default() };
        ok.write(&mut out, &mut sequence);
    } else {
        let message = "Access denied: the reference server knows one user and one password".into();
        ServerError::new(1045, *b"28000", message).write(&mut out, &mut sequence);
    }
    out
}

/// A predictable nonce: there is nothing to keep secret.
fn nonce_of(connection_id: u32) -> [u8; NONCE_LENGTH] {
    let digits = format!("{connection_id:0NONCE_LENGTH$}");
    std::array::from_fn(|index| digits.as_bytes()[index])
}
