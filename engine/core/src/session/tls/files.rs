//! Certificates and keys, read from PEM files before any connection is made.

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// The certificates, at least 1, in the file named in `tls.<option>`.
pub(super) fn certificates(
    option: &str,
    path: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<CertificateDer<'_>>, pem::Error>>);
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unreadable("certificates", option, path, "none in it")),
        Err(error) => Err(unreadable("certificates", option, path, &in_words(&error))),
    }
}

/// The private key in the file named in `tls.key`.
pub(super) fn key(path: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            unreadable("a private key that needs no password", "key", path, "none in it")
        }
        error => unreadable("a private key", "key", path, &in_words(&error)),
    })
}

/// The authorities of `tls.ca` as anchors of chains.
pub(super) fn anchors(
    path: &str,
    listed: &[CertificateDer<'_>],
) -> Result<RootCertStore, TlsError> {
    let mut anchors = RootCertStore::empty();
    for certificate in listed {
        anchors.add(certificate.clone()).map_err(|error| {
            unreadable("certificates of authorities", "ca", path, &error.to_string())
        })?;
    }
    Ok(anchors)
}

fn unreadable(wanted: &str, option: &str, path: &str, found: &str) -> TlsError {
    TlsError(format!(
        "wanted {wanted} in {path:?} (tls.{option}), found {found}; try the path of a PEM file that this \
         user may read"
    ))
}

fn in_words(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        error => format!("what is no PEM: {error}"),
    }
}
