//! TLS for sessions: verification, certificates and ciphers.
//!
//! The library is rustls with ring: no OpenSSL has to be installed, and every machine has the same.
//! It speaks TLS 1.2 and 1.3 only.

mod cipher_suites;
mod diffie_hellman;
mod files;
mod problem;
mod spec;
mod verification;

pub use self::problem::{TlsError, TlsProblem};
pub use self::spec::{TlsMode, TlsSpec};

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection as Records};

/// The TLS configuration shared by all sessions.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Use of TLS and verification of the server.
    pub mode: TlsMode,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Does the TLS handshake over `stream`.
    ///
    /// # Errors
    /// [`TlsProblem`] when the two ends do not agree, or the certificate fails its verification.
    pub fn handshake(
        &self,
        host: &str,
        stream: &mut (impl Read + Write),
    ) -> Result<Records, TlsProblem> {
        let client = ClientConnection::new(Arc::clone(&self.config), self.name_of(host)?)?;
        let mut records = Records::Client(client);
        while records.is_handshaking() {
            if let Err(error) = records.complete_io(stream) {
                return Err(alert_of(&mut records, stream, &error).unwrap_or(problem_of(error)));
            }
        }
        Ok(records)
    }

    /// The host as a name for certificates. A host unfit for a certificate is an error only where
    /// names are verified.
    fn name_of(&self, host: &str) -> Result<ServerName<'static>, TlsProblem> {
        match ServerName::try_from(host.to_owned()) {
            Ok(name) => Ok(name),
            Err(_) if self.mode == TlsMode::VerifyIdentity => {
                Err(TlsProblem::Name(host.to_owned()))
            }
            Err(_) => Ok(ServerName::try_from("localhost").expect("a name")),
        }
    }
}

/// Reads the alert sent by the server before it closed the connection under the client's write.
fn alert_of(
    records: &mut Records,
    stream: &mut impl Read,
    error: &io::Error,
) -> Option<TlsProblem> {
    let hung_up = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    if !hung_up.contains(&error.kind()) || records.read_tls(stream).is_err() {
        return None;
    }
    records.process_new_packets().err().map(TlsProblem::from)
}

fn problem_of(error: io::Error) -> TlsProblem {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(inner) => TlsProblem::Handshake(Box::new(inner.clone())),
        None => TlsProblem::Cut(error),
    }
}

/// Version and cipher suite of a session.
pub(crate) fn described(records: &Records) -> String {
    let version = match records.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS 1.3",
    };
    let suite = records.negotiated_cipher_suite().map_or("", cipher_suites::name);
    format!("{version}, {suite}")
}
