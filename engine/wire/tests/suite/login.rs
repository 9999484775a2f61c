//! Opening a session, turn by turn, against greetings and wishes written by the other end.

use dbdyno_wire::WholePassword;
use dbdyno_wire::mysql::auth::{Plugin, PublicKey};
use dbdyno_wire::mysql::capability;
use dbdyno_wire::mysql::handshake::{
    AuthSwitch, Handshake, HandshakeResponse, NONCE_LENGTH, parse_more_data,
};
use dbdyno_wire::mysql::login::{self, Credentials, Login, LoginError, Step};
use dbdyno_wire::mysql::packet::HEADER_LENGTH;
use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::rand_core::OsRng;
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

const NONCE: &[u8; NONCE_LENGTH] = b"abcdefghijklmnopqrst";
const OTHER: &[u8; NONCE_LENGTH] = b"01234567890123456789";

fn greeting(plugin: Plugin, capabilities: u32) -> Handshake {
    Handshake {
        server_version: "8.0.33".into(),
        connection_id: 12,
        nonce: NONCE.to_vec(),
        capabilities,
        collation: 255,
        status: 2,
        plugin: plugin.name().into(),
    }
}

fn payload(write: impl FnOnce(&mut Vec<u8>, &mut u8)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &mut 0);
    out.split_off(HEADER_LENGTH)
}

fn credentials(whole: WholePassword<'_>) -> Credentials<'_> {
    Credentials { user: "bench", password: "secret", database: "sbtest", whole }
}

fn begun(plugin: Plugin, whole: WholePassword<'_>) -> (Login<'_>, u32, Vec<u8>) {
    let greeting = greeting(plugin, capability::SERVER);
    let bytes = payload(|out, sequence| greeting.write(out, sequence));
    assert_eq!(login::greeting(&bytes), Ok(greeting.clone()));
    let mut sequence = 1;
    let (login, agreed, packet) = Login::begin(credentials(whole), &greeting, 0, &mut sequence);
    assert_eq!((packet[3], sequence), (1, 2), "the answer is packet number 1");
    (login, agreed, packet)
}

fn switch(plugin: &str) -> Vec<u8> {
    let wish = AuthSwitch { plugin: plugin.as_bytes(), nonce: OTHER };
    payload(|out, sequence| wish.write(out, sequence))
}

fn more(data: &[u8]) -> Vec<u8> {
    [&[1][..], data].concat()
}

/// A server's key, and the PEM of its public part.
fn key() -> (RsaPrivateKey, String) {
    let key = RsaPrivateKey::new_with_exp(&mut OsRng, 1024, &65_537_u32.into()).expect("a key");
    let pem = key.to_public_key().to_public_key_pem(LineEnding::LF).expect("its PEM");
    (key, pem)
}

#[test]
fn the_answer_names_the_user_and_proves_the_password() {
    for plugin in [Plugin::NativePassword, Plugin::CachingSha2] {
        let (mut login, agreed, packet) = begun(plugin, WholePassword::Withheld);
        let response = HandshakeResponse::parse(&packet[HEADER_LENGTH..]).expect("an answer");
        assert_eq!(response.user, b"bench");
        assert_eq!(response.database, b"sbtest");
        assert_eq!(response.plugin, plugin.name().as_bytes());
        assert_eq!(response.answer, plugin.answer(b"secret", NONCE));
        assert_eq!(response.capabilities, agreed);
        assert_ne!(agreed & capability::DEPRECATE_EOF, 0);
        assert_eq!(login.take(&[0, 0, 0, 2, 0, 0, 0]), Ok(Step::Done));
    }
}

#[test]
fn only_what_the_server_offers_is_agreed() {
    let offered = capability::REQUIRED | capability::TRANSACTIONS | capability::SSL;
    let greeting = greeting(Plugin::NativePassword, offered);
    let agreed =
        |wanted| Login::begin(credentials(WholePassword::Withheld), &greeting, wanted, &mut 1).1;
    assert_eq!(agreed(capability::COMPRESS), capability::REQUIRED | capability::TRANSACTIONS);
    assert_eq!(agreed(capability::SSL), offered);
}

#[test]
fn the_wish_for_tls_is_the_head_of_the_answer_that_follows_inside() {
    let offered = capability::SERVER | capability::SSL | capability::COMPRESS;
    let greeting = greeting(Plugin::CachingSha2, offered);
    let wanted = capability::SSL | capability::COMPRESS;
    let mut sequence = 1;
    let wish =
        login::tls_request(credentials(WholePassword::Clear), &greeting, wanted, &mut sequence);
    assert_eq!((wish[..4].to_vec(), sequence), (vec![32, 0, 0, 1], 2));
    let (_, agreed, packet) =
        Login::begin(credentials(WholePassword::Clear), &greeting, wanted, &mut sequence);
    assert_eq!((agreed & wanted, packet[3]), (wanted, 2));
    assert_eq!(wish[HEADER_LENGTH..], packet[HEADER_LENGTH..][..32]);
    assert!(packet.len() > wish.len(), "it names the user as well");
}

#[test]
fn a_switch_is_answered_with_the_new_nonce() {
    let (mut login, ..) = begun(Plugin::CachingSha2, WholePassword::Withheld);
    let answer = Plugin::NativePassword.answer(b"secret", OTHER);
    assert_eq!(login.take(&switch("mysql_native_password")), Ok(Step::Send(answer)));
}

#[test]
fn an_unknown_plugin_is_named() {
    let (mut login, ..) = begun(Plugin::NativePassword, WholePassword::Withheld);
    let error = login.take(&switch("client_ed25519")).expect_err("an unknown plugin");
    assert!(error.to_string().contains("\"client_ed25519\""));
    assert_eq!(login.take(&[0xfe]), Err(LoginError::UnknownPlugin("mysql_old_password".into())));
}

#[test]
fn a_cached_password_only_needs_patience() {
    let (mut login, ..) = begun(Plugin::CachingSha2, WholePassword::Withheld);
    assert_eq!(login.take(&more(&[3])), Ok(Step::Wait));
}

#[test]
fn a_cold_cache_gets_the_whole_password_as_far_as_nobody_else_reads_it() {
    let (mut login, ..) = begun(Plugin::CachingSha2, WholePassword::Clear);
    assert_eq!(login.take(&more(&[4])), Ok(Step::Send(b"secret\0".to_vec())));
    let (mut login, ..) = begun(Plugin::CachingSha2, WholePassword::Sealed);
    assert_eq!(login.take(&more(&[4])), Ok(Step::Send(vec![2])));
    assert_eq!(login.take(&more(b"no key")), Err(LoginError::Key));
}

#[test]
fn a_password_that_is_withheld_is_not_sealed_with_a_key_nobody_asked_for() {
    let (_, pem) = key();
    for data in [&[4][..], pem.as_bytes(), b"", b"no key"] {
        for greets_for in [Plugin::CachingSha2, Plugin::NativePassword] {
            let (mut login, ..) = begun(greets_for, WholePassword::Withheld);
            let _ = login.take(&switch("caching_sha2_password"));
            assert_eq!(login.take(&more(data)), Err(LoginError::Withheld));
        }
    }
}

#[test]
fn a_password_is_sealed_for_the_key_at_hand_whatever_key_the_server_sends() {
    let ((owner, pem), (_, other)) = (key(), key());
    let known = PublicKey::parse(format!("{pem}\0").as_bytes()).expect("a key as in MySQL's file");
    for data in [&[4][..], other.as_bytes()] {
        let (mut login, ..) = begun(Plugin::CachingSha2, WholePassword::SealedFor(&known));
        let Ok(Step::Send(sealed)) = login.take(&more(data)) else { panic!("no password") };
        assert!(owner.decrypt(Oaep::new::<Sha1>(), &sealed).is_ok());
    }
}

#[test]
fn a_refusal_before_the_greeting_is_a_refusal() {
    let Err(LoginError::Refused(error)) = login::greeting(b"\xff\x10\x04Too many connections")
    else {
        panic!("a session begun");
    };
    assert_eq!(error.code, 1040);
}

#[test]
fn another_protocol_is_refused() {
    let error = login::greeting(b"SSH-2.0").expect_err("a refusal");
    assert!(error.to_string().contains("does not speak MySQL"));
    let bytes = payload(|out, n| greeting(Plugin::NativePassword, 0).write(out, n));
    assert_eq!(login::greeting(&bytes).err(), Some(LoginError::TooOld));
}

#[test]
fn more_data_has_a_first_byte_of_its_own() {
    assert_eq!(parse_more_data(b"\x01key"), Ok(&b"key"[..]));
    assert!(parse_more_data(b"key").is_err());
    assert!(parse_more_data(b"").is_err());
}
