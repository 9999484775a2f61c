//! The network between servers for Python: relays with a delay for each byte.
use dbdyno_core::relay::Relay;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::thread;
use std::time::Duration;

/// Passes connections from each listener on to its target with a delay of half the round trip.
/// Takes the listeners over and does not return; the GIL is released.
#[pyfunction]
pub fn relay(
    py: Python<'_>,
    routes: Vec<(RawFd, String, u16)>,
    round_trip_ms: f64,
) -> PyResult<()> {
    let round_trip = Duration::try_from_secs_f64(round_trip_ms / 1e3)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut relays = Vec::new();
    for (descriptor, host, port) in routes {
        let address: IpAddr = host
            .parse()
            .map_err(|error| PyValueError::new_err(format!("no address: {host}: {error}")))?;
        // SAFETY: the caller hands the descriptor over and no longer uses it.
        let listener = TcpListener::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        listener.set_nonblocking(false).map_err(PyOSError::new_err)?;
        relays.push(Relay::new(listener, SocketAddr::new(address, port), round_trip));
    }
    py.detach(|| {
        thread::scope(|scope| {
            for relay in &relays {
                scope.spawn(|| relay.serve());
            }
        });
    });
    Ok(())
}
