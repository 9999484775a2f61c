//! Proof of a password: SCRAM-SHA-256, bound to the TLS channel if any, and MD5.
//!
//! RFC 5802 and RFC 7677. The password does not travel, and the server proves by its signature to
//! know it too, so an impostor is detected.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use md5::Md5;
use rsa::rand_core::{OsRng, RngCore};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::sync::{Mutex, PoisonError};

/// The mechanism without a channel binding.
pub const SCRAM: &str = "SCRAM-SHA-256";
/// The mechanism with a binding to the server's certificate.
pub const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Most rounds accepted, above any real server's; a hostile server could keep a client busy for
/// ever.
const ROUNDS_MAX: u32 = 1_000_000;
const NONCE_LENGTH: usize = 18;

/// Error of the exchange of proofs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// A message of the server unfit for the exchange.
    #[error("the server's SCRAM message has no usable {0}")]
    Message(&'static str),
    /// The server does not know the password it asks for.
    #[error("the server's SCRAM signature is wrong: it does not know the password")]
    Signature,
    /// The server's own words.
    #[error("the server ended the SCRAM exchange: {0}")]
    Refused(String),
}

/// The channel binding of the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// No TLS.
    None,
    /// TLS, but the server offers no binding.
    NotOffered,
    /// The hash of the server's certificate (RFC 5929, `tls-server-end-point`).
    Certificate(Vec<u8>),
}

impl Binding {
    /// The binding of a session over TLS to the server's certificate (DER). The hash is the same as
    /// in the certificate's own signature, at least SHA-256; with an unknown hash the session is
    /// not bound.
    #[must_use]
    pub fn of_certificate(der: &[u8]) -> Self {
        match signature_algorithm(der) {
            Some(RSA_SHA384 | ECDSA_SHA384) => Self::Certificate(Sha384::digest(der).to_vec()),
            Some(RSA_SHA512 | ECDSA_SHA512) => Self::Certificate(Sha512::digest(der).to_vec()),
            Some(RSA_MD5 | RSA_SHA1 | RSA_SHA256 | ECDSA_SHA1 | ECDSA_SHA256) => {
                Self::Certificate(Sha256::digest(der).to_vec())
            }
            _ => Self::None,
        }
    }

    /// The mechanism for this binding.
    #[must_use]
    pub const fn mechanism(&self) -> &'static str {
        match self {
            Self::Certificate(_) => SCRAM_PLUS,
            Self::None | Self::NotOffered => SCRAM,
        }
    }

    const fn header(&self) -> &'static str {
        match self {
            Self::None => "n,,",
            Self::NotOffered => "y,,",
            Self::Certificate(_) => "p=tls-server-end-point,,",
        }
    }

    fn data(&self) -> Vec<u8> {
        let mut data = self.header().as_bytes().to_vec();
        if let Self::Certificate(hash) = self {
            data.extend_from_slice(hash);
        }
        data
    }
}

// Object identifiers of signatures, as DER holds them (RFC 8017, RFC 5758).
const RSA_MD5: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04";
const RSA_SHA1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05";
const RSA_SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b";
const RSA_SHA384: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c";
const RSA_SHA512: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d";
const ECDSA_SHA1: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x01";
const ECDSA_SHA256: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x02";
const ECDSA_SHA384: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x03";
const ECDSA_SHA512: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x04";

/// The object identifier of the signature in a certificate,
/// `SEQUENCE { body, SEQUENCE { identifier, … }, … }`.
fn signature_algorithm(der: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const IDENTIFIER: u8 = 0x06;
    let (certificate, _) = element(SEQUENCE, der)?;
    let (_body, rest) = element(SEQUENCE, certificate)?;
    let (algorithm, _) = element(SEQUENCE, rest)?;
    element(IDENTIFIER, algorithm).map(|(identifier, _)| identifier)
}

/// The content of the DER element at the front, if it has this tag, and the bytes after it.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let add = |length: usize, &digit: &u8| length.checked_mul(256)?.checked_add(digit.into());
        (digits.iter().try_fold(0, add)?, rest)
    };
    rest.split_at_checked(length).filter(|_| found == tag)
}

/// An exchange: [`Self::first`], then [`Self::answer`], then [`Self::check`].
pub struct Scram {
    password: Vec<u8>,
    binding: Binding,
    nonce: String,
    /// The signature due in the server's last message.
    signature: Option<[u8; 32]>,
}

impl Scram {
    /// An exchange with a nonce of the system's entropy.
    #[must_use]
    pub fn new(password: &str, binding: Binding) -> Self {
        let mut bytes = [0; NONCE_LENGTH];
        OsRng.fill_bytes(&mut bytes);
        Self::with_nonce(password, binding, STANDARD.encode(bytes))
    }

    fn with_nonce(password: &str, binding: Binding, nonce: String) -> Self {
        // Passwords forbidden by SASLprep are used as they are, as by libpq.
        let password = stringprep::saslprep(password)
            .map_or_else(|_| password.as_bytes().to_vec(), |text| text.as_bytes().to_vec());
        Self { password, binding, nonce, signature: None }
    }

    /// The client's first message. The user's name is left empty: the session's start has it.
    #[must_use]
    pub fn first(&self) -> String {
        format!("{}n=,r={}", self.binding.header(), self.nonce)
    }

    /// The answer to the server's first message.
    ///
    /// # Errors
    /// [`ScramError::Message`] when it has no usable text, nonce, salt or number of rounds.
    pub fn answer(&mut self, server_first: &[u8]) -> Result<String, ScramError> {
        let server_first = str::from_utf8(server_first).map_err(|_| ScramError::Message("text"))?;
        let field = |name| attribute(server_first, name);
        let nonce = field('r')
            .filter(|nonce| nonce.starts_with(&self.nonce) && nonce.len() > self.nonce.len())
            .ok_or(ScramError::Message("nonce"))?;
        let salt = field('s')
            .and_then(|salt| STANDARD.decode(salt).ok())
            .ok_or(ScramError::Message("salt"))?;
        let rounds = field('i')
            .and_then(|rounds| rounds.parse().ok())
            .filter(|rounds| (1..=ROUNDS_MAX).contains(rounds))
            .ok_or(ScramError::Message("number of rounds"))?;
        let salted = salted_password(&self.password, &salt, rounds);
        let client_key = hmac(&salted, b"Client Key");
        let stored_key: [u8; 32] = Sha256::digest(client_key).into();
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(self.binding.data()));
        let exchange = format!("n=,r={},{server_first},{without_proof}", self.nonce);
        let client_signature = hmac(&stored_key, exchange.as_bytes());
        let mut proof = client_key;
        proof.iter_mut().zip(client_signature).for_each(|(byte, other)| *byte ^= other);
        self.signature = Some(hmac(&hmac(&salted, b"Server Key"), exchange.as_bytes()));
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message.
    ///
    /// # Errors
    /// [`ScramError`] when the server refuses, or cannot know the password.
    pub fn check(&self, server_last: &[u8]) -> Result<(), ScramError> {
        let server_last = str::from_utf8(server_last).map_err(|_| ScramError::Message("text"))?;
        if let Some(words) = attribute(server_last, 'e') {
            return Err(ScramError::Refused(words.to_owned()));
        }
        let told = attribute(server_last, 'v').and_then(|text| STANDARD.decode(text).ok());
        match (told, self.signature) {
            (Some(told), Some(expected)) if told == expected => Ok(()),
            _ => Err(ScramError::Signature),
        }
    }
}

fn attribute(message: &str, name: char) -> Option<&str> {
    message.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// A salted password, with its password, salt and number of rounds.
struct Salted {
    password: Vec<u8>,
    salt: Vec<u8>,
    rounds: u32,
    salted: [u8; 32],
}

/// The salted password computed last. All sessions of a run prove the same password with the same
/// salt, and RFC 5802 lets a client keep the result of so many rounds.
static LAST: Mutex<Option<Salted>> = Mutex::new(None);

fn salted_password(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 32] {
    // Locked during the computation: otherwise sessions opened together would all compute it.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(one) = &*last
        && (&one.password[..], &one.salt[..], one.rounds) == (password, salt, rounds)
    {
        return one.salted;
    }
    let salted = iterated(password, salt, rounds);
    *last = Some(Salted { password: password.to_vec(), salt: salt.to_vec(), rounds, salted });
    salted
}

/// `Hi` of RFC 5802: PBKDF2 with a single block.
fn iterated(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 32] {
    let keyed = Hmac::<Sha256>::new_from_slice(password).expect("HMAC takes keys of any length");
    let mac = |text: &[u8]| -> [u8; 32] {
        keyed.clone().chain_update(text).finalize().into_bytes().into()
    };
    let mut block = mac(&[salt, &1_u32.to_be_bytes()].concat());
    let mut sum = block;
    for _ in 1..rounds {
        block = mac(&block);
        sum.iter_mut().zip(block).for_each(|(byte, other)| *byte ^= other);
    }
    sum
}

/// `md5` and the hexadecimal MD5 of salt and the MD5 of password and user.
#[must_use]
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hexadecimal(&[password.as_bytes(), user.as_bytes()].concat());
    format!("md5{}", hexadecimal(&[inner.as_bytes(), &salt].concat()))
}

fn hexadecimal(text: &[u8]) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3, with an empty user's name as in PostgreSQL.
    fn example() -> (Scram, &'static [u8]) {
        let scram = Scram::with_nonce("pencil", Binding::None, "rOprNGfwEbeRWgbNEkqO".to_owned());
        let first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        (scram, first)
    }

    #[test]
    fn a_salted_password_is_that_of_the_rfc() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        salted_password(b"pencil", &salt, 4095); // kept, and not taken for the next one
        let salted = salted_password(b"pencil", &salt, 4096);
        assert_eq!(salted_password(b"pencil", &salt, 4096), salted);
        assert_ne!(salted_password(b"pencils", &salt, 4096), salted);
        // From `ServerKey` and `StoredKey` as PostgreSQL stores them for this password and salt.
        let stored: [u8; 32] = Sha256::digest(hmac(&salted, b"Client Key")).into();
        assert_eq!(STANDARD.encode(stored), "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=");
        assert_eq!(
            STANDARD.encode(hmac(&salted, b"Server Key")),
            "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        );
    }

    #[test]
    fn an_exchange_ends_when_the_server_knows_the_password() {
        let (mut scram, first) = example();
        assert_eq!(scram.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let answer = scram.answer(first).expect("an answer");
        assert!(
            answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=")
        );
        let signature = STANDARD.encode(scram.signature.expect("a signature"));
        assert_eq!(scram.check(format!("v={signature}").as_bytes()), Ok(()));
        assert_eq!(scram.check(b"v=AAAA"), Err(ScramError::Signature));
        let refused = ScramError::Refused("invalid-proof".to_owned());
        assert_eq!(scram.check(b"e=invalid-proof"), Err(refused));
    }

    #[test]
    fn a_server_that_repeats_our_nonce_or_asks_for_endless_rounds_is_refused() {
        for (first, missing) in [
            (&b"r=rOprNGfwEbeRWgbNEkqO,s=AAAA,i=1"[..], "nonce"),
            (b"r=other,s=AAAA,i=1", "nonce"),
            (b"r=rOprNGfwEbeRWgbNEkqOx,s=?,i=1", "salt"),
            (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=4000000000", "number of rounds"),
            (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=0", "number of rounds"),
            (b"\xff", "text"),
        ] {
            assert_eq!(example().0.answer(first), Err(ScramError::Message(missing)));
        }
    }

    #[test]
    fn a_binding_is_part_of_the_proof() {
        let binding = Binding::Certificate(vec![1, 2, 3]);
        assert_eq!(binding.mechanism(), SCRAM_PLUS);
        let scram = Scram::with_nonce("pencil", binding, "n".to_owned());
        assert_eq!(scram.first(), "p=tls-server-end-point,,n=,r=n");
        assert_eq!(scram.binding.data(), b"p=tls-server-end-point,,\x01\x02\x03");
    }

    #[test]
    fn a_certificate_binds_by_the_hash_of_its_signature() {
        let signed_by = |identifier: &[u8]| {
            let algorithm =
                [&[0x30, identifier.len() as u8 + 2, 0x06, identifier.len() as u8], identifier];
            let body = [&[0x30, 0x81, 2, 1, 2][..], &algorithm.concat()].concat();
            [&[0x30, body.len() as u8][..], &body].concat()
        };
        for (identifier, length) in [(RSA_SHA1, 32), (ECDSA_SHA384, 48), (RSA_SHA512, 64)] {
            let Binding::Certificate(hash) = Binding::of_certificate(&signed_by(identifier)) else {
                panic!("{identifier:?} is known")
            };
            assert_eq!(hash.len(), length);
        }
        let whole = signed_by(RSA_SHA256);
        for cut in 0..whole.len() {
            assert_eq!(Binding::of_certificate(&whole[..cut]), Binding::None);
        }
        assert_eq!(Binding::of_certificate(&signed_by(b"\x2b\x65\x70")), Binding::None); // Ed25519
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_certificate_or_none(der: Vec<u8>) {
            let _ = Binding::of_certificate(&der);
        }
    }

    #[test]
    fn md5_is_that_of_the_documentation() {
        let proof = md5_password("joe", "secret", [1, 2, 3, 4]);
        assert_eq!(proof, "md5850be429f1fe77df3f603ac424abb440"); // by Python's hashlib
    }
}
