//! Where a server listens, and who logs in.

use std::fmt;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        path: String,
    },
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
