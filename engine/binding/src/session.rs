//! An administrator's session for Python, with a single query at a time.
//!
//! The work is done in a separate thread, so Ctrl-C takes effect at once, however busy a server
//! keeps the client: the waiting caller abandons the thread.
use crate::value::from_python;
use dbdyno_core::control::{ControlSession, ControlSpec};
use dbdyno_core::session::{self, Trouble};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval between checks for signals in a wait.
const LOOK: Duration = Duration::from_millis(50);

create_exception!(
    _engine,
    SessionError,
    PyException,
    "No answer: what was found, what to try (or None), and absent, late, refused or odd."
);

/// The password in the text of a `.pgpass`, by libpq's rules; empty without any.
#[pyfunction]
pub fn password_in_file(
    text: &str,
    host: &Bound<'_, PyString>,
    port: i32,
    database: &Bound<'_, PyString>,
    user: &Bound<'_, PyString>,
) -> String {
    // An argument that is not UTF-8 is refused where it is used, in words for people.
    let [host, database, user] = [host, database, user].map(|one| one.to_string_lossy());
    let wanted = [&*host, &port.to_string(), &database, &user];
    session::password_in_file(text, wanted).unwrap_or_default()
}

/// A session with a single query at a time.
#[pyclass(module = "dbdyno._engine", frozen)]
pub struct Session {
    spec: ControlSpec,
    given_up: Arc<AtomicBool>,
    open: Mutex<Option<ControlSession>>,
}

type Rows = Vec<Vec<Option<String>>>;

/// The arguments of a [`SessionError`].
type Told = (String, Option<&'static str>, &'static str);

#[pymethods]
impl Session {
    /// A session, not connected yet.
    #[new]
    fn new(spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: ControlSpec = from_python(spec)?;
        if spec.endpoint.is_empty() || Duration::try_from_secs_f64(spec.login_s).is_err() {
            return Err(PyValueError::new_err("wanted an endpoint, and seconds for the login"));
        }
        Ok(Self { spec, given_up: Arc::default(), open: Mutex::default() })
    }

    /// Connects and logs in.
    fn log_in(&self, py: Python<'_>) -> PyResult<()> {
        let (spec, given_up) = (self.spec.clone(), Arc::clone(&self.given_up));
        let opened = self.wait(py, move || {
            let transport = spec.transport().map_err(|failure| (failure.message, None, "odd"))?;
            ControlSession::open(&spec, &transport, given_up).map_err(|error| told(&error))
        })?;
        self.keep(opened.map_err(SessionError::new_err)?);
        Ok(())
    }

    /// The rows of the answer, due within `limit_s` seconds.
    fn ask(&self, py: Python<'_>, sql: String, limit_s: f64) -> PyResult<Rows> {
        let limit = Duration::try_from_secs_f64(limit_s)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let taken = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut session) = taken else {
            return Err(SessionError::new_err(("no session is open", None::<&str>, "absent")));
        };
        let (session, answer) = self.wait(py, move || {
            let answer = session.query(&sql, limit);
            (session, answer)
        })?;
        self.keep(session);
        answer.map_err(|error| SessionError::new_err(told(&error)))
    }

    /// Cancels every wait for this session.
    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Logs out.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        open.map_or(Ok(()), |session| self.wait(py, move || session.quit()))
    }
}

impl Session {
    fn keep(&self, session: ControlSession) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Waits for the result of `work` in a thread, unless a signal's handler raises before.
    fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PyResult<T> {
        let (done, mut arriving) = channel();
        thread::Builder::new().name("session".into()).spawn(move || drop(done.send(work())))?;
        loop {
            let arrived;
            (arriving, arrived) = py.detach(move || {
                let arrived = arriving.recv_timeout(LOOK);
                (arriving, arrived)
            });
            match arrived {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| self.give_up())?;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the session's thread ended early"));
                }
            }
        }
    }
}

fn told(error: &session::SessionError) -> Told {
    let kind = match error.trouble() {
        Trouble::Absent => "absent",
        Trouble::Late => "late",
        Trouble::Refused => "refused",
        Trouble::Odd => "odd",
    };
    (error.found(), error.advice(), kind)
}
