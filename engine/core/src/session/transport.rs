//! Whether sessions use TLS and compression.

use crate::error::Failure;
use crate::session::tls::{Tls, TlsSpec};

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
