//! Addresses of servers, logins, and the TLS and compression of sessions.

use std::net::IpAddr;
use std::{fmt, fs};

use dbdyno_wire::WholePassword;
use dbdyno_wire::mysql::auth::PublicKey;
use serde::Deserialize;

use crate::error::Failure;
use crate::session::stream::Stream;
use crate::session::tls::{Tls, TlsSpec};

/// Address of a server: TCP or a Unix socket.
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
    /// Host name a certificate is checked against.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Unix { .. } => "localhost",
        }
    }

    /// True if only this machine can answer at the address: a Unix socket, `localhost` or a
    /// loopback address.
    fn is_local(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => host.parse().map_or_else(
                |_| host.eq_ignore_ascii_case("localhost"),
                |address: IpAddr| address.to_canonical().is_loopback(),
            ),
            Self::Unix { .. } => true,
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

/// A login: user, password and database; `Debug` omits the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The password; may be empty.
    pub password: String,
    /// The database to begin in; may be empty.
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

/// The password in a file of PostgreSQL's client library (`~/.pgpass`), if there is one: that of the
/// first line HOST:PORT:DATABASE:USER:PASSWORD whose fields are those of `wanted`. A field `*` is
/// any, and a backslash takes the next character as it is.
#[must_use]
pub fn password_in_file(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.split('\n').filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line.trim_end_matches('\r'));
        let (named, behind) = fields.split_first_chunk::<4>()?;
        let fits = |(field, wanted): (&&str, &str)| *field == "*" || plain(field) == wanted;
        let password = behind.first().filter(|_| named.iter().zip(wanted).all(fits))?;
        Some(plain(password))
    })
}

/// The parts between colons that have no backslash before them.
fn fields(line: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_end = |one: char| {
        let is_end = one == ':' && !is_escaped;
        is_escaped = one == '\\' && !is_escaped;
        is_end
    };
    line.split(is_end).collect()
}

/// A field without the backslashes before its characters.
fn plain(field: &str) -> String {
    let mut characters = field.chars();
    let mut plain = String::new();
    while let Some(one) = characters.next() {
        plain.push(if one == '\\' { characters.next().unwrap_or(one) } else { one });
    }
    plain
}

/// TLS and compression of sessions, and the server's key without TLS. The default: none of them.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    pub(super) tls: Option<Tls>,
    pub(super) compression: bool,
    server_key: Option<PublicKey>,
    takes_any_key: bool,
}

impl Transport {
    /// Reads the certificates and keys named in `tls`, and the file `server_key`.
    ///
    /// # Errors
    /// A certificate, key or name that cannot be used, at stage `connect`.
    pub fn new(
        tls: &TlsSpec,
        compression: bool,
        server_key: Option<&str>,
        takes_any_key: bool,
    ) -> Result<Self, Failure> {
        let tls = tls.made().map_err(|error| Failure::new("connect", error.to_string()))?;
        let server_key = server_key.map(key_in).transpose()?;
        Ok(Self { tls, compression, server_key, takes_any_key })
    }

    /// The form in which the server at `endpoint` may have the password over `stream`: that of
    /// MySQL's own clients, and a server on this machine need not show its key before.
    pub(super) fn whole_password(&self, endpoint: &Endpoint, stream: &Stream) -> WholePassword<'_> {
        if stream.socket.socket.is_private() || stream.link.is_encrypted() {
            return WholePassword::Clear;
        }
        match &self.server_key {
            Some(key) => WholePassword::SealedFor(key),
            None if self.takes_any_key || endpoint.is_local() => WholePassword::Sealed,
            None => WholePassword::Withheld,
        }
    }
}

/// The public key (PEM) in the file at `path`.
fn key_in(path: &str) -> Result<PublicKey, Failure> {
    let failed = |found: &str| {
        let wanted = format!("wanted the server's public key in {path:?}, found {found}");
        Failure::new(
            "connect",
            format!("{wanted}; try a copy of public_key.pem in its data directory"),
        )
    };
    let pem = fs::read(path).map_err(|error| failed(&error.to_string()))?;
    PublicKey::parse(&pem).map_err(|_| failed("no RSA key (PEM)"))
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
    fn a_password_is_found_by_the_rules_of_libpq() {
        let found = |text: &str| password_in_file(text, ["db", "6432", "d", "u"]);
        for (text, password) in [
            ("db:6432:d:u:secret", "secret"),
            ("db:6432:d:u:secret\r\n", "secret"),
            ("\n*:*:*:*:a:b", "a"),
            ("db:5432:d:u:no\ndb:*:d:u:yes\n*:*:*:*:late", "yes"),
            ("# db:6432:d:u:no\n\\db:6432:*:u:a\\:b\\\\c\\", "a:b\\c\\"),
            ("db:6432:d:u:\u{2028}", "\u{2028}"),
            ("db:6432:d:u:\n*:*:*:*:late", ""),
        ] {
            assert_eq!(found(text).as_deref(), Some(password), "{text}");
        }
        for text in ["", "db:6432:d:u", "db:6432:d:*u:no", "db:6432:d:\\*:no", "db\\:6432:d:u:no"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let is_local = |host: &str| Endpoint::Tcp { host: host.into(), port: 3306 }.is_local();
        for host in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in
            ["10.0.0.1", "0.0.0.0", "::", "127.0.0.1.example.com", "localhost.example.com", ""]
        {
            assert!(!is_local(host), "{host}");
        }
        assert!(Endpoint::Unix { path: "/run/my.sock".into() }.is_local());
    }

    #[test]
    fn a_login_is_shown_without_its_password() {
        let login = Login { user: "u".into(), password: "secret".into(), database: "d".into() };
        assert_eq!(format!("{login:?}"), r#"Login { user: "u", database: "d", .. }"#);
    }
}
