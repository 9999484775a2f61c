//! Certificate checks of each mode, with certificates made for the test.

use dbdyno_core::session::tls::{Tls, TlsProblem, TlsSpec};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{Connection as Records, RootCertStore, ServerConfig, ServerConnection};
use serde_json::{Value, json};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// An authority, a certificate for `db.example`, and their files.
struct Certificates {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::SeqCst);
        let name = format!("dbdyno-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let made = Self { folder, authority };
        made.write("ca.pem", &made.authority.pem());
        made
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn issue(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.authority).expect("a certificate");
        self.write("cert.pem", &certificate.pem());
        self.write("key.pem", &key.serialize_pem());
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (certificate.der().clone(), key)
    }

    fn server(&self, wants_client: bool) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let (certificate, key) = self.issue("db.example");
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        Arc::new(builder.with_single_cert(vec![certificate], key).expect("a configuration"))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn spec(value: Value) -> TlsSpec {
    serde_json::from_value(value).expect("a spec")
}

fn tls(value: Value) -> Tls {
    spec(value).made().expect("usable").expect("TLS")
}

/// Shakes hands and then reads once, since a server checks a client's certificate last.
fn met(server: Arc<ServerConfig>, value: Value, host: &str) -> Result<(), String> {
    let (mut here, mut there) = UnixStream::pair().expect("a pair");
    let serving = std::thread::spawn(move || {
        let mut records = ServerConnection::new(server).expect("a server");
        let done = records.complete_io(&mut there).map(drop);
        drop(records.complete_io(&mut there));
        done
    });
    let met = tls(value).handshake(host, &mut here);
    drop(here.shutdown(Shutdown::Write));
    let served = serving.join().expect("no panic");
    met.map_err(|problem| problem.to_string())?;
    served.map_err(|error| error.to_string())
}

#[test]
fn each_mode_verifies_what_it_says() {
    let (ours, theirs) = (Certificates::new(), Certificates::new());
    let server = ours.server(false);
    let meets = |mode: &str, ca: &Certificates, host: &str| {
        met(Arc::clone(&server), json!({"mode": mode, "ca": ca.path("ca.pem")}), host)
    };
    assert_eq!(meets("preferred", &theirs, "anything"), Ok(()));
    assert_eq!(meets("required", &theirs, "no name at all"), Ok(()));
    assert_eq!(meets("verify_ca", &ours, "other.example"), Ok(()));
    assert_eq!(meets("verify_identity", &ours, "db.example"), Ok(()));
    for mode in ["verify_ca", "verify_identity"] {
        let text = meets(mode, &theirs, "db.example").expect_err("another authority");
        assert!(text.contains("a failure of TLS (invalid peer certificate: "), "{text}");
    }
    let text = meets("verify_identity", &ours, "other.example").expect_err("another name");
    assert!(text.contains("other.example"), "{text}");
    let text = meets("verify_identity", &ours, "no name at all").expect_err("no name");
    assert_eq!(text, "a host \"no name at all\" that no certificate can name");
}

#[test]
fn a_certificate_given_as_ca_is_trusted_itself() {
    let ours = Certificates::new();
    let server = ours.server(false);
    let value = |mode: &str| json!({"mode": mode, "ca": ours.path("cert.pem")});
    assert_eq!(met(Arc::clone(&server), value("verify_ca"), "any"), Ok(()));
    assert!(met(server, value("verify_identity"), "any.example").is_err());
}

#[test]
fn a_client_shows_its_certificate_when_asked() {
    let ours = Certificates::new();
    let server = ours.server(true);
    ours.issue("client");
    let shown = json!({
        "mode": "required", "cert": ours.path("cert.pem"), "key": ours.path("key.pem"),
    });
    assert_eq!(met(Arc::clone(&server), shown, "db.example"), Ok(()));
    assert!(met(server, json!({"mode": "required"}), "db.example").is_err());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let ours = Certificates::new();
    let empty = ours.write("empty.pem", "nothing\n");
    let broken =
        ours.write("broken.pem", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
    let error = |value| spec(value).made().expect_err("unusable").to_string();
    let ca = |path: &str| error(json!({"mode": "verify_ca", "ca": path}));
    let text = ca("/nowhere/ca.pem");
    assert!(text.contains("\"/nowhere/ca.pem\" (tls.ca), found No such file"), "{text}");
    assert!(ca(&empty).contains("(tls.ca), found none in it; try the path of a PEM file"));
    assert!(ca(&broken).contains("found what is no PEM"), "{}", ca(&broken));
    ours.issue("client");
    let (cert, key) = (ours.path("cert.pem"), ours.path("key.pem"));
    let text = error(json!({"mode": "required", "cert": cert, "key": empty}));
    assert!(text.contains("a private key that needs no password"), "{text}");
    let ca = ours.path("ca.pem");
    let text = error(json!({"mode": "required", "cert": ca, "key": key}));
    assert!(text.contains("wanted a certificate to show (tls.cert, tls.key)"), "{text}");
}

#[test]
fn mistakes_are_told_all_at_once() {
    let spec = spec(json!({"mode": "verify_identity", "cert": "x", "ciphers": "RC4-MD5"}));
    let mistakes = spec.mistakes();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    assert!(mistakes[0].starts_with("tls.ca must name a file"));
    assert_eq!(mistakes[1], "tls.cert and tls.key must be given together");
    assert!(
        mistakes[2].contains("found \"RC4-MD5\", which is not known here; try some of TLS_AES")
    );
    assert_eq!(TlsSpec::default().mistakes(), Vec::<String>::new());
    assert!(TlsSpec::default().made().expect("nothing to read").is_none());
}

#[test]
fn only_the_named_cipher_is_offered() {
    let ours = Certificates::new();
    let (mut here, mut there) = UnixStream::pair().expect("a pair");
    let server = ours.server(false);
    let serving = std::thread::spawn(move || {
        let mut records = ServerConnection::new(server).expect("a server");
        records.complete_io(&mut there).map(drop)
    });
    let chosen = tls(json!({"mode": "required", "ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256"}));
    let records = chosen.handshake("x", &mut here).expect("a handshake");
    let Records::Client(client) = records else { panic!("a client") };
    let suite = client.negotiated_cipher_suite().expect("a suite").suite();
    assert_eq!(suite, rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    serving.join().expect("no panic").expect("served");
}

#[test]
fn a_server_that_hangs_up_is_told() {
    let (mut here, there) = UnixStream::pair().expect("a pair");
    drop(there);
    let problem = tls(json!({"mode": "required"})).handshake("x", &mut here);
    assert!(matches!(problem, Err(TlsProblem::Cut(_))));
}

#[test]
fn a_server_that_keeps_silent_is_told() {
    let (mut here, _there) = UnixStream::pair().expect("a pair");
    here.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
    let problem = tls(json!({"mode": "required"})).handshake("x", &mut here);
    let text = problem.expect_err("no answer").to_string();
    assert_eq!(text, "no answer to the TLS handshake within the time limit");
}
