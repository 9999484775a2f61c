//! Administrator's session: sequential queries, no load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::session::{PostgresSession, Session, SessionError, Timeouts, Transport};
use crate::spec::server_spec;

/// Time limit of the logout.
const QUIT_MAX: Duration = Duration::from_secs(1);

server_spec! {
    /// Login of an administrator.
    pub struct ControlSpec {
        /// Timeout of connecting and the login together, s.
        pub login_s: f64,
    }
}

/// Open session of either protocol.
pub enum ControlSession {
    /// Session with MySQL.
    Mysql(Session),
    /// Session with PostgreSQL.
    Pgsql(PostgresSession),
}

impl ControlSession {
    /// Connects to the first endpoint of `spec` and logs in, unless `given_up` is set meanwhile.
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

    /// Runs `sql` and returns all its rows as text if they arrive within `limit`.
    ///
    /// # Errors
    /// [`SessionError`] for a refusal or a broken session.
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

    /// Logs out. Errors are ignored: the session ends in any case.
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
