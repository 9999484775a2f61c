//! Verification of a server's certificate: not at all, its authority, or its authority and name.
//!
//! Without verification TLS only protects from eavesdroppers, not from a man in the middle. A
//! certificate listed in `tls.ca` itself is trusted as it is, to allow self-signed certificates.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// A verifier for chains to an anchor and, if wanted, for the server's name.
#[derive(Debug)]
pub(super) struct Verification {
    /// `None` takes any certificate.
    pub(super) anchors: Option<RootCertStore>,
    /// The certificates of `tls.ca` as they are.
    pub(super) listed: Vec<CertificateDer<'static>>,
    pub(super) name_matters: bool,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verification {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(anchors) = &self.anchors else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(end)?;
        if !self.listed.contains(end) {
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, anchors, between, now, algorithms)?;
        }
        if self.name_matters {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.anchors.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.anchors.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
