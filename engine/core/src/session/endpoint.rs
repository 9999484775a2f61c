//! Where a server listens, who logs in, and how sessions travel.

use std::fmt;

use serde::Deserialize;

use crate::error::Failure;
use crate::session::tls::{Tls, TlsSpec};

/// Where a server listens.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "endpoint must be a host and a port, or a socket"
)]
pub enum Endpoint {
    /// TCP.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// The socket's file.
        #[serde(rename = "socket")]
        path: String,
    },
}

impl Endpoint {
    /// The host that a certificate is to be for.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Unix { .. } => "localhost",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path } => f.write_str(path),
        }
    }
}

/// Who logs in; shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The password; empty for none.
    pub password: String,
    /// The database to begin in; empty for none.
    pub database: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// TLS and compression of sessions; the default is neither.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    pub(super) tls: Option<Tls>,
    pub(super) compression: bool,
}

impl Transport {
    /// Reads the certificates and keys that `tls` names.
    ///
    /// # Errors
    /// One that cannot be used, at stage `connect`.
    pub fn new(tls: &TlsSpec, compression: bool) -> Result<Self, Failure> {
        let tls = tls.made().map_err(|error| Failure::new("connect", error.to_string()))?;
        Ok(Self { tls, compression })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_shown_as_one_types_it() {
        let tcp = |host: &str| Endpoint::Tcp { host: host.into(), port: 3306 }.to_string();
        assert_eq!(tcp("127.0.0.1"), "127.0.0.1:3306");
        assert_eq!(tcp("::1"), "[::1]:3306");
        assert_eq!(Endpoint::Unix { path: "/run/my.sock".into() }.to_string(), "/run/my.sock");
    }

    #[test]
    fn a_login_is_shown_without_its_password() {
        let login = Login { user: "u".into(), password: "secret".into(), database: "d".into() };
        assert_eq!(format!("{login:?}"), r#"Login { user: "u", database: "d", .. }"#);
    }
}
