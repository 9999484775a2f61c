//! The key exchange of Diffie and Hellman in MySQL's own group of 2048 bits.
//!
//! MySQL servers built with OpenSSL 1.0 know no other way to fresh keys, and all send the same
//! numbers, which are part of their source. The private number is drawn anew for each session and
//! used once. It is not computed in constant time: only somebody on the load generator's machine
//! could measure the time.

use rsa::BigUint;
use rsa::rand_core::{OsRng, RngCore};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Bytes of the private number: more than twice the 112 bits of strength of a group of 2048 bits.
const PRIVATE_LENGTH: usize = 32;
/// The first number for private use in the table of groups.
const GROUP: NamedGroup = NamedGroup::Unknown(0x01fc);

#[rustfmt::skip]
const PRIME: [u8; 256] = [
    0x8a, 0x5d, 0xfa, 0xc0, 0x66, 0x76, 0x4e, 0x61, 0xfa, 0xca, 0xc0, 0x37, 0x57, 0x5c, 0x6d, 0x3f,
    0x83, 0x0a, 0xa1, 0xf5, 0xf1, 0xe6, 0x7f, 0x3c, 0xc6, 0xaf, 0xda, 0x8b, 0x26, 0xe6, 0x1a, 0x74,
    0x5e, 0x64, 0xcb, 0xe2, 0x08, 0xf1, 0x09, 0xe3, 0xaf, 0xbb, 0x54, 0x29, 0x2d, 0x97, 0xf4, 0x59,
    0xe6, 0x26, 0x83, 0x1f, 0x55, 0xcd, 0x1b, 0x57, 0x55, 0x42, 0x6c, 0xe7, 0xb7, 0xda, 0x6e, 0xd8,
    0x6d, 0xee, 0xb1, 0x4f, 0xa4, 0xd7, 0xf5, 0x41, 0xe1, 0xb4, 0x0b, 0xe1, 0x98, 0x16, 0xe2, 0xed,
    0x16, 0xcf, 0x18, 0x7d, 0x3f, 0x25, 0xc3, 0x82, 0x59, 0xbd, 0xf4, 0x8f, 0x57, 0xca, 0x3e, 0x19,
    0xe4, 0xf5, 0x44, 0xe0, 0xcc, 0x80, 0xb3, 0x10, 0x91, 0x18, 0x0d, 0x64, 0x59, 0x0a, 0x43, 0xf7,
    0xfc, 0xca, 0x01, 0xe8, 0x14, 0x04, 0xf2, 0xcd, 0xa9, 0x2a, 0x3c, 0xf3, 0xa5, 0x2a, 0x83, 0xd8,
    0x66, 0x9f, 0xc9, 0x2c, 0xc9, 0x4f, 0x44, 0x05, 0x5e, 0x5e, 0x00, 0x47, 0x22, 0x0a, 0xe6, 0xb0,
    0x87, 0xa5, 0x74, 0x3b, 0xe4, 0xa3, 0xfc, 0x2d, 0xdc, 0x49, 0xf2, 0xe1, 0x80, 0x0d, 0x06, 0x71,
    0x7a, 0x77, 0x3a, 0xa9, 0x66, 0x70, 0x3b, 0xba, 0x8d, 0x2e, 0x60, 0x5a, 0x39, 0xf7, 0x2d, 0xd3,
    0xf5, 0x53, 0x47, 0x6e, 0x57, 0x13, 0x01, 0x87, 0xf9, 0xde, 0x4d, 0x20, 0x92, 0xbe, 0xd7, 0x1e,
    0xe0, 0x20, 0x0c, 0x60, 0xc8, 0xca, 0x35, 0x58, 0x7d, 0x3f, 0x59, 0xee, 0xfb, 0x67, 0x7d, 0x64,
    0x7d, 0x8e, 0x77, 0x6c, 0x61, 0x44, 0x8a, 0x8c, 0x4d, 0xf0, 0x12, 0xd4, 0xa4, 0xea, 0x17, 0x75,
    0x66, 0x49, 0x6c, 0xcf, 0x14, 0x28, 0xc6, 0x9a, 0x3c, 0x71, 0xfd, 0xb8, 0x3a, 0x6c, 0xe3, 0xa3,
    0xa6, 0x06, 0x5a, 0xa6, 0xf0, 0x7a, 0x00, 0x15, 0xa5, 0x5a, 0x64, 0x66, 0x00, 0x05, 0x85, 0xb7,
];
const GENERATOR: [u8; 1] = [5];

/// The group, as rustls takes it.
#[derive(Debug)]
pub(super) struct MysqlGroup;

impl SupportedKxGroup for MysqlGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut private = [0; PRIVATE_LENGTH];
        OsRng.try_fill_bytes(&mut private).map_err(|_| Error::FailedToGetRandomBytes)?;
        let private = BigUint::from_bytes_be(&private);
        let public = padded(&BigUint::from_bytes_be(&GENERATOR).modpow(&private, &prime()));
        Ok(Box::new(Exchange { private, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        Some(group())
    }

    fn name(&self) -> NamedGroup {
        GROUP
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_2
    }
}

struct Exchange {
    private: BigUint,
    public: Vec<u8>,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (peer, prime) = (BigUint::from_bytes_be(peer), prime());
        let one = BigUint::from(1_u8);
        if peer <= one || peer >= &prime - &one {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(padded(&peer.modpow(&self.private, &prime)).into())
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        Some(group())
    }

    fn group(&self) -> NamedGroup {
        GROUP
    }
}

fn group() -> FfdheGroup<'static> {
    FfdheGroup::from_params_trimming_leading_zeros(&PRIME, &GENERATOR)
}

fn prime() -> BigUint {
    BigUint::from_bytes_be(&PRIME)
}

/// The number in as many bytes as the prime has.
fn padded(number: &BigUint) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    let mut padded = vec![0; PRIME.len() - bytes.len()];
    padded.extend_from_slice(&bytes);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_come_to_the_same_secret() {
        let (ours, theirs) =
            (MysqlGroup.start().expect("ours"), MysqlGroup.start().expect("theirs"));
        let (our_key, their_key) = (ours.pub_key().to_vec(), theirs.pub_key().to_vec());
        assert_ne!(our_key, their_key);
        let here = ours.complete(&their_key).expect("a secret");
        let there = theirs.complete(&our_key).expect("a secret");
        assert_eq!(here.secret_bytes(), there.secret_bytes());
        assert_eq!(here.secret_bytes().len(), PRIME.len());
    }

    #[test]
    fn a_key_that_fixes_the_secret_is_refused() {
        let less = padded(&(prime() - BigUint::from(1_u8)));
        for key in [&[][..], &[0], &[1], &less, &PRIME, &[0xff; 256]] {
            let exchange = MysqlGroup.start().expect("an exchange");
            assert!(exchange.complete(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn the_prime_is_a_safe_one() {
        let half = (prime() - BigUint::from(1_u8)) / BigUint::from(2_u8);
        for number in [prime(), half] {
            let less = &number - BigUint::from(1_u8);
            assert_eq!(BigUint::from(3_u8).modpow(&less, &number), BigUint::from(1_u8));
        }
    }
}
