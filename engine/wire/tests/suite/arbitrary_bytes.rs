//! Foreign bytes never panic: every test run feeds each fuzz target its corpus and a few random
//! inputs. `engine/fuzz` calls the same functions for any length of time.

use proptest::prelude::*;

#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/wire.rs"]
mod targets;

#[test]
fn the_corpus_of_each_target_is_survived_whole_and_damaged() {
    corpus::run("scanner", targets::scanner);
    corpus::run("handshake", targets::handshake);
    corpus::run("command", targets::command);
    corpus::run("response", targets::response);
    corpus::run("compressed", targets::compressed);
    corpus::run("postgres", targets::postgres);
}

/// Packets with the right numbers, to get beyond the first header.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let first =
        prop_oneof![Just(0_u8), Just(1), Just(3), Just(0xfb), Just(0xfe), Just(0xff), any::<u8>()];
    let payload = (first, prop::collection::vec(any::<u8>(), 0..20));
    (any::<u8>(), prop::collection::vec(payload, 0..8)).prop_map(|(cut, payloads)| {
        let mut bytes = vec![cut];
        for (sequence, (first, rest)) in (1_u8..).zip(payloads) {
            bytes.extend_from_slice(&[rest.len() as u8 + 1, 0, 0, sequence, first]);
            bytes.extend_from_slice(&rest);
        }
        bytes
    })
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        targets::scanner(&bytes);
        targets::handshake(&bytes);
        targets::command(&bytes);
        targets::response(&bytes);
        targets::compressed(&bytes);
        targets::postgres(&bytes);
    }

    #[test]
    fn random_packets_are_scanned_alike_whole_and_cut(bytes in packets()) {
        targets::scanner(&bytes);
    }

    #[test]
    fn random_greetings_are_survived(
        tail in prop::collection::vec(any::<u8>(), 30..120),
        next in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let greeting = [&b"\x0a8.0.33\0"[..], &tail[..]].concat();
        targets::handshake(&greeting);
        let length = greeting.len() as u8;
        let fields = [&[length, 0][..], &greeting[..], &[60, 0][..], &next[..]].concat();
        targets::handshake(&fields);
    }
}
