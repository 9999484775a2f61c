//! Errors of TLS, before any connection and in its handshake.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// An unusable file or name in the `tls` part of a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub(super) String);

/// Error of encrypting a session as asked.
#[derive(Debug, thiserror::Error)]
pub enum TlsProblem {
    /// The server does not offer TLS.
    #[error("a server that offers no TLS")]
    NotOffered,
    /// The host cannot be named in a certificate.
    #[error("a host {0:?} that no certificate can name")]
    Name(String),
    /// The connection ended within the handshake.
    #[error("{}", cut(.0))]
    Cut(io::Error),
    /// The two ends did not agree, or the certificate failed its verification.
    #[error("{}", disagreement(.0))]
    Handshake(Box<Error>),
}

impl From<Error> for TlsProblem {
    fn from(error: Error) -> Self {
        Self::Handshake(Box::new(error))
    }
}

/// Kinds of failed handshakes, by the advice for them.
enum Kind {
    OldServer,
    NoCommonCipher,
    OtherAuthority,
    OtherName,
    OldCertificate,
    OutOfDate,
    ClientRefused,
    Other,
}

impl Kind {
    fn of(error: &Error) -> Self {
        match error {
            Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            )
            | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
            | Error::AlertReceived(AlertDescription::ProtocolVersion) => Self::OldServer,
            Error::AlertReceived(
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity,
            ) => Self::NoCommonCipher,
            Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown,
            ) => Self::ClientRefused,
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            _ => Self::Other,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::OtherAuthority
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::OutOfDate,
            CertificateError::Other(other) if other.to_string().contains("Version") => {
                Self::OldCertificate
            }
            _ => Self::Other,
        }
    }
}

impl TlsProblem {
    /// A remedy to try.
    pub(crate) fn advice(&self) -> &'static str {
        let Self::Handshake(error) = self else {
            return match self {
                Self::NotOffered => {
                    "certificates for the server (ssl_cert, ssl_key), or the TLS mode preferred or disabled"
                }
                Self::Name(_) => {
                    "the host's name as its certificate has it, or the TLS mode verify_ca"
                }
                _ => "the server's error log, other ciphers, or the TLS mode disabled",
            };
        };
        match Kind::of(error) {
            Kind::OldServer => {
                "a server that speaks TLS 1.2 (MySQL 5.7 built with OpenSSL, or 8.0), or the TLS mode \
                 disabled"
            }
            Kind::NoCommonCipher => {
                "all ciphers (name none), a server with TLS 1.2 and ECDHE, or the TLS mode disabled"
            }
            Kind::OtherAuthority => {
                "the certificate of the authority that signed the server's as ca"
            }
            Kind::OtherName => "a name that the certificate has, or the TLS mode verify_ca",
            Kind::OldCertificate => {
                "a certificate of X.509 version 3 for the server, or the TLS mode required"
            }
            Kind::OutOfDate => "a new certificate for the server, or this computer's clock",
            Kind::ClientRefused => "cert and key that the server's authority signed",
            Kind::Other => "the server's error log, or another TLS mode",
        }
    }
}

fn cut(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "that the server closed the connection in the TLS handshake".to_owned()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "no answer to the TLS handshake within the time limit".to_owned()
        }
        _ => format!("a TLS handshake that was cut: {error}"),
    }
}

fn disagreement(error: &Error) -> String {
    match Kind::of(error) {
        Kind::OldServer => "a server that speaks only TLS 1.1 or older".to_owned(),
        Kind::NoCommonCipher => "a server with no TLS version or cipher suite in common".to_owned(),
        Kind::ClientRefused => {
            format!("a server that does not accept the client's certificate ({error})")
        }
        _ => format!("a failure of TLS ({error})"),
    }
}
