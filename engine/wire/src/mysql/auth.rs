//! Proof of a password: `mysql_native_password` and `caching_sha2_password`.
//!
//! Both mix a hash of the password with the server's nonce, so the password itself does not travel.
//! When the server has no hash in its cache, `caching_sha2_password` wants the password once: in
//! clear over a Unix socket or inside TLS, otherwise encrypted with the server's RSA key, which the
//! server sends, or the client has already. An impostor has a key, too: [`crate::WholePassword`]
//! limits who gets the password.

use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey, rand_core::OsRng};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Data of the server: the password was found in its cache, OK follows.
pub const CACHING_SHA2_FOUND: u8 = 3;
/// Data of the server: it needs the password itself.
pub const CACHING_SHA2_FULL: u8 = 4;
/// Data of the client: send the public key.
pub const CACHING_SHA2_KEY_REQUEST: u8 = 2;

/// A way of proving a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// The default up to MySQL 5.7, and of MariaDB.
    NativePassword,
    /// The default from MySQL 8.0 on.
    CachingSha2,
}

impl Plugin {
    /// The plugin of this name, if it is known here.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::NativePassword, Self::CachingSha2].into_iter().find(|p| p.name().as_bytes() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NativePassword => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The answer to a nonce; empty for an empty password.
    #[must_use]
    pub fn answer(self, password: &[u8], nonce: &[u8]) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Self::NativePassword => native_password(password, nonce),
            Self::CachingSha2 => caching_sha2(password, nonce),
        }
    }
}

/// SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))
fn native_password(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mixed = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
    xor(&once, &mixed)
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)
fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mixed = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
    xor(&once, &mixed)
}

/// A server's RSA key, which encrypts passwords for this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(RsaPublicKey);

impl PublicKey {
    /// Reads a key (PEM); in MySQL's own file a zero byte follows it.
    ///
    /// # Errors
    /// [`KeyError`] when it cannot be read.
    pub fn parse(pem: &[u8]) -> Result<Self, KeyError> {
        let pem = std::str::from_utf8(pem).map_err(|_| KeyError)?;
        let pem = pem.trim_matches(|end: char| end == '\0' || end.is_whitespace());
        RsaPublicKey::from_public_key_pem(pem).map(Self).map_err(|_| KeyError)
    }

    /// Encrypts a password, mixed with the nonce.
    ///
    /// The padding is drawn from the system's random numbers: it protects the password, and no
    /// result depends on it.
    ///
    /// # Errors
    /// [`KeyError`] when the key is too small for the password.
    pub fn seal(&self, password: &[u8], nonce: &[u8]) -> Result<Vec<u8>, KeyError> {
        if nonce.is_empty() {
            return Err(KeyError);
        }
        let terminated: Vec<u8> = password.iter().copied().chain([0]).collect();
        let repeated: Vec<u8> = nonce.iter().copied().cycle().take(terminated.len()).collect();
        let mixed = xor(&terminated, &repeated);
        self.0.encrypt(&mut OsRng, Oaep::new::<Sha1>(), &mixed).map_err(|_| KeyError)
    }
}

/// The server's public key cannot encrypt the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};
    use rsa::{BigUint, RsaPrivateKey};

    const NONCE: &[u8; 20] = b"12345678901234567890";

    #[test]
    fn plugins_are_found_by_their_names() {
        for plugin in [Plugin::NativePassword, Plugin::CachingSha2] {
            assert_eq!(Plugin::from_name(plugin.name().as_bytes()), Some(plugin));
            assert_eq!(plugin.answer(b"", NONCE), b"");
        }
        assert_eq!(Plugin::from_name(b"client_ed25519"), None);
    }

    /// The server knows only SHA1(SHA1(password)) and checks the answer with it.
    #[test]
    fn a_server_can_check_a_native_answer_by_its_stored_hash() {
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let answer = Plugin::NativePassword.answer(b"secret", NONCE);
        let mixed = Sha1::new().chain_update(NONCE).chain_update(stored).finalize();
        assert_eq!(Sha1::digest(xor(&answer, &mixed)), stored);
    }

    /// The server caches SHA256(SHA256(password)) and checks the answer with it.
    #[test]
    fn a_server_can_check_a_caching_answer_by_its_cached_hash() {
        let cached = Sha256::digest(Sha256::digest(b"secret"));
        let answer = Plugin::CachingSha2.answer(b"secret", NONCE);
        let mixed = Sha256::new().chain_update(cached).chain_update(NONCE).finalize();
        assert_eq!(Sha256::digest(xor(&answer, &mixed)), cached);
    }

    #[test]
    fn the_holder_of_the_key_reads_the_password() {
        let exponent = BigUint::from(65_537_u32);
        let private = RsaPrivateKey::new_with_exp(&mut OsRng, 1024, &exponent).expect("a key");
        let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).expect("its PEM");
        let password = b"a password longer than the nonce";
        let key = PublicKey::parse(pem.as_bytes()).expect("a key");
        let sealed = key.seal(password, NONCE).expect("a sealed password");
        let mixed = private.decrypt(Oaep::new::<Sha1>(), &sealed).expect("the mixed password");
        let repeated: Vec<u8> = NONCE.iter().copied().cycle().take(mixed.len()).collect();
        assert_eq!(xor(&mixed, &repeated), b"a password longer than the nonce\0");
    }

    #[test]
    fn nonsense_is_no_key() {
        assert_eq!(PublicKey::parse(b"no key"), Err(KeyError));
        assert_eq!(PublicKey::parse(&[0xff]), Err(KeyError));
    }
}
