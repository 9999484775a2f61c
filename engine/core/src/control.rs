//! The session of an administrator: one question after the other, never load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::session::{PostgresSession, Session, SessionError, Timeouts, Transport};
use crate::spec::server_spec;

/// For saying good-bye.
const QUIT_MAX: Duration = Duration::from_secs(1);

server_spec! {
    /// Where an administrator logs in.
    pub struct ControlSpec {
        /// Timeout of connecting and the login together, s.
        pub login_s: f64,
    }
}

/// An open session, whichever protocol it speaks.
pub enum ControlSession {
    /// With a MySQL.
    Mysql(Session),
    /// With a PostgreSQL.
    Pgsql(PostgresSession),
}

impl ControlSession {
    /// Connects to the first endpoint of `spec` and logs in, until somebody sets `given_up`.
    ///
    /// # Errors
    /// As [`Session::connect_over`].
    pub fn open(
        spec: &ControlSpec,
        transport: &Transport,
        given_up: Arc<AtomicBool>,
    ) -> Result<Self, SessionError> {
        let limit = Timeouts::of_login(Duration::from_secs_f64(spec.login_s));
        let timeouts = Timeouts { given_up, ..limit };
        let (endpoint, login) = (spec.endpoint.of(0), spec.login());
        match spec.driver {
            Driver::Mysql => {
                Session::connect_over(&endpoint, &login, transport, &timeouts).map(Self::Mysql)
            }
            Driver::Pgsql => {
                PostgresSession::connect(&endpoint, &login, transport, &timeouts).map(Self::Pgsql)
            }
        }
    }

    /// Runs `sql`, and gives all its rows as text if they come within `limit`.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, or the session broke.
    pub fn query(
        &mut self,
        sql: &str,
        limit: Duration,
    ) -> Result<Vec<Vec<Option<String>>>, SessionError> {
        self.wait_until(limit);
        match self {
            Self::Mysql(session) => session.query(sql),
            Self::Pgsql(session) => session.query(sql),
        }
    }

    /// Logs out. Errors no longer matter: the session ends in any case.
    pub fn quit(mut self) {
        self.wait_until(QUIT_MAX);
        match self {
            Self::Mysql(session) => session.quit(),
            Self::Pgsql(session) => session.quit(),
        }
    }

    fn wait_until(&mut self, limit: Duration) {
        let moment = Some(Instant::now() + limit);
        match self {
            Self::Mysql(session) => session.wait_until(moment),
            Self::Pgsql(session) => session.wait_until(moment),
        }
    }
}
