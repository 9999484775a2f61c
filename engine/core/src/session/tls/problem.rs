//! What goes wrong with TLS, before any connection and while one is opened.

use std::{fmt, io};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// A file or a name in the `tls` part of a spec that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(pub(super) String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// A session that could not be encrypted as it was asked for.
#[derive(Debug)]
pub enum TlsProblem {
    /// The server does not offer TLS.
    NotOffered,
    /// No certificate can be for such a host.
    Name(String),
    /// The connection ended within the handshake.
    Cut(io::Error),
    /// The two ends did not agree, or the certificate is not what was asked for.
    Handshake(Box<Error>),
}

impl From<Error> for TlsProblem {
    fn from(error: Error) -> Self {
        Self::Handshake(Box::new(error))
    }
}

/// What kind of disagreement ended a handshake, as far as there is advice for it.
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
    /// What to try.
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

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::NotOffered => return f.write_str("a server that offers no TLS"),
            Self::Name(host) => return write!(f, "a host {host:?} that no certificate can name"),
            Self::Cut(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return f.write_str("that the server closed the connection in the TLS handshake");
            }
            Self::Cut(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                return f.write_str("no answer to the TLS handshake within the time limit");
            }
            Self::Cut(error) => return write!(f, "a TLS handshake that was cut: {error}"),
            Self::Handshake(error) => error,
        };
        match Kind::of(error) {
            Kind::OldServer => f.write_str("a server that speaks only TLS 1.1 or older"),
            Kind::NoCommonCipher => {
                f.write_str("a server with no TLS version or cipher suite in common")
            }
            Kind::ClientRefused => {
                write!(f, "a server that does not accept the client's certificate ({error})")
            }
            _ => write!(f, "a failure of TLS ({error})"),
        }
    }
}
