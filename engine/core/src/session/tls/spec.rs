//! The `tls` part of a spec, and the TLS configuration made from it.

use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, KeyExchangeAlgorithm, ring};
use serde::Deserialize;

use super::diffie_hellman::MysqlGroup;
use super::verification::Verification;
use super::{Tls, TlsError, cipher_suites, files};

/// Use of TLS, and the requirements on the server's certificate.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// Never.
    #[default]
    Disabled,
    /// Over TCP, when the server offers it; any certificate will do.
    Preferred,
    /// Always; any certificate will do.
    Required,
    /// Always; an authority of `ca` must have signed the certificate.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must be for the host in the spec.
    VerifyIdentity,
}

impl TlsMode {
    /// True if the server's certificate is verified.
    const fn is_verified(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyIdentity)
    }
}

/// TLS as a spec asks for it. With the mode `disabled` the rest is ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSpec {
    /// Use of TLS and verification of the server.
    pub mode: TlsMode,
    /// File of the authorities' certificates (PEM).
    pub ca: Option<String>,
    /// File of the client's certificate and its chain to an authority (PEM).
    pub cert: Option<String>,
    /// File of the client's private key (PEM, not encrypted).
    pub key: Option<String>,
    /// Cipher suites, separated by colons or commas, under their names at IANA or in OpenSSL; empty
    /// for all.
    pub ciphers: String,
    #[serde(skip)]
    made: OnceLock<Result<Option<Tls>, TlsError>>,
}

impl TlsSpec {
    /// The mistakes in the `tls` part, a sentence for each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.mode == TlsMode::Disabled {
            return mistakes;
        }
        if self.mode.is_verified() && self.ca.is_none() {
            mistakes
                .push("tls.ca must name a file of certificates to verify the server's".to_owned());
        }
        if self.cert.is_some() != self.key.is_some() {
            mistakes.push("tls.cert and tls.key must be given together".to_owned());
        }
        mistakes.extend(cipher_suites::chosen(&self.ciphers).err().map(|error| error.to_string()));
        mistakes
    }

    /// The TLS configuration for sessions; `None` when TLS is disabled. Files are read by the first
    /// call only.
    ///
    /// # Errors
    /// A file that cannot be read or used.
    pub fn made(&self) -> Result<Option<Tls>, TlsError> {
        self.made.get_or_init(|| self.make()).clone()
    }

    fn make(&self) -> Result<Option<Tls>, TlsError> {
        if self.mode == TlsMode::Disabled {
            return Ok(None);
        }
        let provider = Arc::new(self.provider()?);
        let unusable = |error: rustls::Error| {
            TlsError(format!("wanted a certificate to show (tls.cert, tls.key), found {error}"))
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(format!("wanted usable tls.ciphers, found {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(&provider)?);
        let mut config = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let chain = files::certificates("cert", cert)?;
                builder.with_client_auth_cert(chain, files::key(key)?).map_err(unusable)?
            }
            _ => builder.with_no_client_auth(),
        };
        // Each connection does a full handshake, at the same cost as the first.
        config.resumption = Resumption::disabled();
        Ok(Some(Tls { mode: self.mode, config: Arc::new(config) }))
    }

    fn provider(&self) -> Result<CryptoProvider, TlsError> {
        let cipher_suites = cipher_suites::chosen(&self.ciphers)?;
        let mut kx_groups = ring::DEFAULT_KX_GROUPS.to_vec();
        if cipher_suites
            .iter()
            .any(|suite| cipher_suites::exchange(*suite) == KeyExchangeAlgorithm::DHE)
        {
            kx_groups.push(&MysqlGroup);
        }
        Ok(CryptoProvider { cipher_suites, kx_groups, ..ring::default_provider() })
    }

    fn verifier(&self, provider: &CryptoProvider) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let algorithms = provider.signature_verification_algorithms;
        let (TlsMode::VerifyCa | TlsMode::VerifyIdentity, Some(path)) = (self.mode, &self.ca)
        else {
            let (anchors, listed) = (None, Vec::new());
            return Ok(Arc::new(Verification { anchors, listed, name_matters: false, algorithms }));
        };
        let listed = files::certificates("ca", path)?;
        let anchors = Some(files::anchors(path, &listed)?);
        let name_matters = self.mode == TlsMode::VerifyIdentity;
        Ok(Arc::new(Verification { anchors, listed, name_matters, algorithms }))
    }
}
