//! The cipher suites under their names at IANA and in OpenSSL.
//!
//! rustls has the suites of TLS 1.3, and of 1.2 with key exchange by elliptic curves. MySQL servers
//! built with OpenSSL 1.0 (5.7, and 8.0 up to 8.0.15 at least) offer no curves; for them two suites
//! are added with the older key exchange of Diffie and Hellman and the same ciphers.
//!
//! rustls ends a session of 1.2 with AES-GCM after 2^24 records, where 1.3 only changes its keys: a
//! connection with 15,000 statements a second would last 19 minutes. No other client does so, and
//! the number holds for records of 16 KiB. The records here are hardly ever as long, so suites of
//! 1.2 have no limit.

use rustls::crypto::KeyExchangeAlgorithm;
use rustls::crypto::ring::cipher_suite as ring;
use rustls::{CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls12CipherSuite};

use super::TlsError;

/// Name at IANA, name in OpenSSL, and the suite, in order of preference.
pub(super) const TABLE: [(&str, &str, SupportedCipherSuite); 11] = [
    ("TLS_AES_256_GCM_SHA384", "", ring::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", "", ring::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", "", ring::TLS13_CHACHA20_POLY1305_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        SupportedCipherSuite::Tls12(&ECDSA_AES_256),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        SupportedCipherSuite::Tls12(&ECDSA_AES_128),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        ring::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        SupportedCipherSuite::Tls12(&RSA_AES_256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        SupportedCipherSuite::Tls12(&RSA_AES_128),
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
        ring::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
        "DHE-RSA-AES256-GCM-SHA384",
        SupportedCipherSuite::Tls12(&DHE_AES_256),
    ),
    (
        "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
        "DHE-RSA-AES128-GCM-SHA256",
        SupportedCipherSuite::Tls12(&DHE_AES_128),
    ),
];

static ECDSA_AES_256: Tls12CipherSuite =
    without_limit(ring::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
static ECDSA_AES_128: Tls12CipherSuite =
    without_limit(ring::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
static RSA_AES_256: Tls12CipherSuite = without_limit(ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384);
static RSA_AES_128: Tls12CipherSuite = without_limit(ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256);
static DHE_AES_256: Tls12CipherSuite = without_curves(
    ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_DHE_RSA_WITH_AES_256_GCM_SHA384,
);
static DHE_AES_128: Tls12CipherSuite = without_curves(
    ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_DHE_RSA_WITH_AES_128_GCM_SHA256,
);

/// The same suite without a limit of records.
const fn without_limit(like: SupportedCipherSuite) -> Tls12CipherSuite {
    let SupportedCipherSuite::Tls12(like) = like else { panic!("a suite of TLS 1.2") };
    let common = CipherSuiteCommon { confidentiality_limit: u64::MAX, ..like.common };
    Tls12CipherSuite { common, ..*like }
}

/// The same cipher and hash with the other key exchange.
const fn without_curves(like: SupportedCipherSuite, suite: CipherSuite) -> Tls12CipherSuite {
    let like = without_limit(like);
    let common = CipherSuiteCommon { suite, ..like.common };
    Tls12CipherSuite { common, kx: KeyExchangeAlgorithm::DHE, ..like }
}

/// The suites of a list of names, separated by colons or commas; all for an empty list.
///
/// # Errors
/// The first unknown name, with a list of the known names.
pub(super) fn chosen(names: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let mut names =
        names.split([':', ',']).map(str::trim).filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Ok(TABLE.map(|(.., suite)| suite).to_vec());
    }
    names.map(found).collect()
}

fn found(name: &str) -> Result<SupportedCipherSuite, TlsError> {
    let row = TABLE.iter().find(|(iana, openssl, _)| [*iana, *openssl].contains(&name));
    row.map(|&(.., suite)| suite).ok_or_else(|| {
        let known: Vec<&str> = TABLE.iter().map(|&(iana, openssl, _)| shown(iana, openssl)).collect();
        TlsError(format!(
            "wanted cipher suites in tls.ciphers, found {name:?}, which is not known here; try some of \
             {}, or none for all of them",
            known.join(":")
        ))
    })
}

/// The key exchange of a suite.
pub(super) fn exchange(suite: SupportedCipherSuite) -> KeyExchangeAlgorithm {
    match suite {
        SupportedCipherSuite::Tls12(suite) => suite.kx,
        SupportedCipherSuite::Tls13(_) => KeyExchangeAlgorithm::ECDHE,
    }
}

/// The name shown by MySQL as `Ssl_cipher`.
pub(super) fn name(suite: SupportedCipherSuite) -> &'static str {
    let row = TABLE.iter().find(|(.., known)| known.suite() == suite.suite());
    row.map_or("", |&(iana, openssl, _)| shown(iana, openssl))
}

const fn shown(iana: &'static str, openssl: &'static str) -> &'static str {
    if openssl.is_empty() { iana } else { openssl }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_chosen_by_either_name() {
        let chosen = |names: &str| -> Vec<CipherSuite> {
            chosen(names).expect("suites").iter().map(SupportedCipherSuite::suite).collect()
        };
        let wanted = [
            CipherSuite::TLS_DHE_RSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
        ];
        assert_eq!(chosen("DHE-RSA-AES128-GCM-SHA256:TLS_AES_256_GCM_SHA384"), wanted);
        assert_eq!(chosen(" TLS_DHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384 "), wanted);
        assert_eq!(chosen("").len(), TABLE.len());
    }

    #[test]
    fn an_unknown_suite_is_named_with_the_known_ones() {
        for name in ["AES256-SHA", "ecdhe-rsa-aes128-gcm-sha256"] {
            let text = chosen(name).expect_err("no such suite").to_string();
            assert!(text.contains(&format!("found {name:?}")), "{text}");
            assert!(text.contains("TLS_AES_256_GCM_SHA384:TLS_AES_128"), "{text}");
        }
    }

    #[test]
    fn no_session_ends_because_it_has_sent_much() {
        for (iana, _, suite) in TABLE {
            if let SupportedCipherSuite::Tls12(suite) = suite {
                assert_eq!(suite.common.confidentiality_limit, u64::MAX, "{iana}");
            }
        }
    }

    #[test]
    fn every_suite_of_the_library_is_in_the_table() {
        for suite in rustls::crypto::ring::ALL_CIPHER_SUITES {
            assert_ne!(name(*suite), "", "{suite:?}");
        }
    }
}
