//! Links in memory: two ends, any cut between them, and TLS messages without data.

use dbdyno_core::driver::Driver;
use dbdyno_core::random::{Distribution, Random};
use dbdyno_core::session::link::{Link, LinkError};
use dbdyno_core::session::tls::TlsSpec;
use dbdyno_core::worker::connection::Connection;
use dbdyno_core::workload::{Client, ConnectionRange, Workload, WorkloadSpec, build};
use dbdyno_wire::mysql::compressed::FrameError;
use dbdyno_wire::mysql::scanner::{Outcome, ScanError};
use proptest::prelude::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{Connection as Records, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// OK as packet number 1.
static OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
static TLS_1_2: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
static TLS_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

fn server_config(versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a configuration");
    Arc::new(config)
}

/// Client end of an encrypted session, and the server's.
fn encrypted(versions: &'static [&'static SupportedProtocolVersion]) -> (Link, Records) {
    let spec: TlsSpec = serde_json::from_str(r#"{"mode": "required"}"#).expect("a spec");
    let tls = spec.made().expect("usable").expect("TLS");
    let (mut here, mut there) = UnixStream::pair().expect("a pair");
    let server = std::thread::spawn(move || {
        let mut records = ServerConnection::new(server_config(versions)).expect("a server");
        while records.is_handshaking() {
            records.complete_io(&mut there).expect("a handshake");
        }
        Records::Server(records)
    });
    let mut link = Link::default();
    link.encrypt(tls.handshake("localhost", &mut here).expect("a handshake"));
    let server = server.join().expect("no panic");
    let mut tickets = Vec::new();
    here.read_to_end(&mut tickets).expect("what was sent behind the handshake");
    assert_eq!(tickets.is_empty(), versions == TLS_1_2);
    assert_eq!(decoded(&mut link, &tickets, 5), Ok(Vec::new()));
    (link, server)
}

/// Both ends of a session.
fn ends(
    versions: Option<&'static [&'static SupportedProtocolVersion]>,
    compressed: bool,
) -> (Link, Link) {
    let (mut client, mut server) = (Link::default(), Link::default());
    if let Some(versions) = versions {
        let (link, records) = encrypted(versions);
        client = link;
        server.encrypt(records);
    }
    if compressed {
        client.compress();
        server.compress();
    }
    (client, server)
}

fn decoded(link: &mut Link, bytes: &[u8], piece: usize) -> Result<Vec<u8>, LinkError> {
    let mut found = Vec::new();
    for part in bytes.chunks(piece) {
        link.decode(part, &mut |content| {
            found.extend_from_slice(content);
            Ok(())
        })?;
    }
    Ok(found)
}

/// A connection after a point select as text over `link`; and the request as sent.
fn asked(link: Link, workload: &dyn Workload) -> (Connection, Vec<u8>) {
    let client = Client::new(0, Vec::new(), Random::for_stream(1, 0));
    let mut connection = Connection::new(true, client).over(link);
    assert!(connection.draw(workload, 0));
    let request = connection.request().to_vec();
    (connection, request)
}

fn point_selects() -> Box<dyn Workload> {
    build(&WorkloadSpec {
        driver: Driver::Mysql,
        name: "oltp_point_select".into(),
        options: serde_json::Map::new(),
        distribution: Distribution::Uniform {},
        prepared: false,
        connections: 1,
        own: ConnectionRange::ALL,
    })
    .expect("a workload")
}

#[test]
fn a_plain_link_hands_the_same_bytes_on() {
    let mut link = Link::default();
    assert_eq!(link.request(OK).as_ptr(), OK.as_ptr());
    link.decode(OK, &mut |bytes| {
        assert_eq!(bytes.as_ptr(), OK.as_ptr());
        Ok(())
    })
    .expect("the bytes");
    assert_eq!((link.to_string().as_str(), link.is_encrypted()), ("plain", false));
}

#[test]
fn every_way_brings_all_bytes_at_any_cut() {
    let long: Vec<u8> = (0..70_000_u32).map(|i| (i % 251) as u8).collect();
    for (versions, compressed) in
        [(Some(TLS_1_2), false), (Some(TLS_1_3), false), (None, true), (Some(TLS_1_3), true)]
    {
        for piece in [1, 7, 16 * 1024, 1 << 20] {
            let (mut client, mut server) = ends(versions, compressed);
            let question = client.request(b"\x01\0\0\0\x0e").to_vec();
            assert_eq!(decoded(&mut server, &question, piece), Ok(b"\x01\0\0\0\x0e".to_vec()));
            let (first, second) = (server.more(&long).to_vec(), server.more(OK).to_vec());
            let answer = decoded(&mut client, &[first, second].concat(), piece).expect("bytes");
            assert_eq!(answer, [&long, OK].concat(), "{client} in pieces of {piece}");
        }
    }
}

#[test]
fn a_link_says_what_it_is() {
    let (client, _) = ends(Some(TLS_1_3), true);
    assert_eq!(client.to_string(), "TLS 1.3, TLS_AES_256_GCM_SHA384, compressed");
    assert_eq!(ends(Some(TLS_1_2), false).0.to_string(), "TLS 1.2, ECDHE-ECDSA-AES256-GCM-SHA384");
    assert_eq!(ends(None, true).0.to_string(), "compressed");
}

#[test]
fn records_without_a_byte_for_us_are_taken_in_silence() {
    let (mut link, mut server) = encrypted(TLS_1_3);
    let mut sent = Vec::new();
    server.refresh_traffic_keys().expect("new keys");
    while server.wants_write() {
        server.write_tls(&mut sent).expect("bytes");
    }
    assert!(!sent.is_empty());
    assert_eq!(decoded(&mut link, &sent, 1 << 20), Ok(Vec::new()));
    let mut there = Link::default();
    there.encrypt(server);
    let answer = there.more(OK).to_vec();
    assert_eq!(decoded(&mut link, &answer, 3), Ok(OK.to_vec()), "under the new keys");
    let question = link.request(b"\x01\0\0\0\x0e").to_vec();
    assert_eq!(decoded(&mut there, &question, 1 << 20), Ok(b"\x01\0\0\0\x0e".to_vec()));
}

#[test]
fn a_session_that_the_server_ended_brings_no_more() {
    let (mut link, mut server) = encrypted(TLS_1_3);
    server.send_close_notify();
    let mut sent = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut sent).expect("bytes");
    }
    sent.extend_from_slice(b"whatever follows");
    assert_eq!(decoded(&mut link, &sent, 1 << 20), Ok(Vec::new()));
    assert_eq!(decoded(&mut link, b"and more", 1), Ok(Vec::new()));
}

#[test]
fn a_reply_is_followed_through_every_way() {
    let workload = point_selects();
    for (versions, compressed) in [(Some(TLS_1_3), false), (None, true), (Some(TLS_1_2), true)] {
        for piece in [1, 5, 1 << 20] {
            let (client, mut server) = ends(versions, compressed);
            let (mut connection, request) = asked(client, &*workload);
            let question = decoded(&mut server, &request, piece).expect("a request");
            assert_eq!(question[4..11], *b"\x03SELECT");
            let answer = server.more(OK).to_vec();
            let outcomes: Vec<Outcome> = answer
                .chunks(piece)
                .filter_map(|part| connection.feed(part).expect("a reply"))
                .collect();
            assert!(matches!(&outcomes[..], [Outcome::Done(summary)] if summary.bytes == 11));
        }
    }
}

#[test]
fn a_packet_behind_the_reply_is_refused_in_another_record_too() {
    let workload = point_selects();
    let (client, mut server) = ends(Some(TLS_1_3), false);
    let (mut connection, _) = asked(client, &*workload);
    let answer = [server.more(OK).to_vec(), server.more(OK).to_vec()].concat();
    let error = connection.feed(&answer).expect_err("too much");
    assert_eq!(error, LinkError::Reply(ScanError::Trailing { count: OK.len() }));
}

#[test]
fn nonsense_is_named_by_the_layer_it_breaks() {
    let (mut client, _) = ends(Some(TLS_1_3), false);
    let error = decoded(&mut client, &[7; 40], 40).expect_err("no record");
    assert!(matches!(error, LinkError::Records(_)));
    assert!(error.to_string().starts_with("wanted a record of TLS, found "), "{error}");
    let (mut client, mut server) = ends(Some(TLS_1_3), false);
    let mut spoiled = server.more(OK).to_vec();
    *spoiled.last_mut().expect("a byte") ^= 1;
    assert!(matches!(decoded(&mut client, &spoiled, 99), Err(LinkError::Records(_))));
    let (mut client, _) = ends(None, true);
    let error = decoded(&mut client, b"\x01\0\0\x09\0\0\0x", 99).expect_err("a wrong number");
    assert_eq!(error, LinkError::Frames(FrameError::Sequence { expected: 0, found: 9 }));
}

/// A script may send a request after a failed ROLLBACK without checking its result.
#[test]
fn a_session_whose_tls_broke_sends_no_request_any_more() {
    let (mut client, mut server) = ends(Some(TLS_1_3), false);
    let answer = server.more(OK).to_vec();
    assert!(decoded(&mut client, &[7; 40], 40).is_err());
    let sent = client.request(b"\x01\0\0\0\x0e").to_vec();
    assert_ne!(decoded(&mut server, &sent, 99), Ok(b"\x01\0\0\0\x0e".to_vec()));
    assert!(decoded(&mut client, &answer, 99).is_err(), "an answer is none of it");
}

proptest! {
    #[test]
    fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..99) {
        let (mut client, _) = ends(None, true);
        let _ = decoded(&mut client, &bytes, piece);
    }
}
