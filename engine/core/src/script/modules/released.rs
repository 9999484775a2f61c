//! sysbench's own scripts, recognized by their code.
//!
//! A file with sysbench's name for a script may be a user's own, whatever its folder is called. Only
//! code of a release stands for what is built in, which has the same statements and costs less CPU.
//! Comments, blank lines and line ends do not count: packages change them.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;

/// Digests of the code of sysbench 1.0.20, and of sysbench 1.1 as built from its repository (commit
/// a245b2f). Older releases have other statements, or fewer: their files are run as they are.
const DIGESTS: [(&str, [&str; 2]); 12] = [
    (
        "bulk_insert",
        [
            "ea91c80c7a1fed53e8a41cb4a60570e2f2db4bf0f0653404782687ed802e160b",
            "0a7f504114ffdc68c779d1c4c59c108d2011874a44f521b16ba67bf14de8d56e",
        ],
    ),
    (
        "oltp_common",
        [
            "1a0e8049af545d0c9bdd15ee179620e77e9638e53d41c4dfd72b5673ecd32320",
            "075856797aa0eeea9c0392b59e93922290acd0ba33091c0fc3b9a534a1b84512",
        ],
    ),
    (
        "oltp_delete",
        [
            "7eb5fb3c27f5d8b999d0f871636396bcdac261f5193fbf47de9d01cf9c61ac97",
            "e68c7d16b942d60f252e4662dde97fde62007e964757efd698922c6bd86dad28",
        ],
    ),
    (
        "oltp_insert",
        [
            "8dc8149db17085398cc739e13b90b0c47ca02c6ba48a3f09c6a361cf4fea44ca",
            "9d2450b6dc7522e388b3b10716b7e1d8065dcff762c1c013ec56335dfc721982",
        ],
    ),
    (
        "oltp_point_select",
        [
            "958e81b38687a71c718691f114975444ed302a2241011adf4bea784efb85cbe7",
            "fea19367cc6ef69015e9688788db8ff3b9368c6e804bbcecad5f511a1a32c1f0",
        ],
    ),
    (
        "oltp_read_only",
        [
            "c1fc53b45c97ff71993b1d0a757a1a4e6697bdad94ae52b32af0f036dd9f546d",
            "7b5f3c0458ceabb1a9ac308e6b84d89d0ef1970a61caad4c04443823e2e33a05",
        ],
    ),
    (
        "oltp_read_write",
        [
            "8da2b4d8c9b18a1525c2cfa278f57281cf1b51e33dde0f541aa5357a9c283ef3",
            "d8faca4a69832aef05bfb879d102475822743c7b898bdcc5be7dcdb8a6699921",
        ],
    ),
    (
        "oltp_update_index",
        [
            "456095583dd8171d5b71606a11b45612d3dde9103b6261fdfb8eab86dd6870bb",
            "39b1e2c011087832410ca0aefc2ed53a9f3208121fe8cb20202c98a08488e62e",
        ],
    ),
    (
        "oltp_update_non_index",
        [
            "43420a4cb8f078069d7854bb24b9d1393a9e77a8d6defe5e6e4520d48b85ee6c",
            "28db89e6c6bf3755899f169f30527732ce3611ab98aeb9f4621d83e46aaf7dd5",
        ],
    ),
    (
        "oltp_write_only",
        [
            "cb25097a8e4efce1aa402cdd8f91955bfc435420701dacf9b27e63dfc9dd9a01",
            "1ba1a11550f8645778c54e1c0c09353254acd59c06540a1b4f74edfd3d374629",
        ],
    ),
    (
        "select_random_points",
        [
            "648c30eb6857aeb3dd09fb18c67c3215b981809366eb660be91e8343c2fc57f6",
            "6985b6db9b45fdad661a564bc9009b2e378337aeb9c94f5a0719ebe315edb5c7",
        ],
    ),
    (
        "select_random_ranges",
        [
            "bde33f164d0d5c17dabc4b9da39961e3ed4ce7d6f552109b69d9c774c1646d86",
            "767efbd0e11c6924e79f56d403b8a427c253bdf263bf5ec79737174794116546",
        ],
    ),
];

/// True if a file is a released script of this name (without `.lua`).
#[must_use]
pub fn is_released(name: &str, path: &Path) -> bool {
    let known = DIGESTS.iter().find(|(script, _)| *script == name);
    known.is_some_and(|(_, digests)| {
        std::fs::read(path).is_ok_and(|text| digests.contains(&code_digest(&text).as_str()))
    })
}

/// SHA-256 of a script's lines of code, each without the blanks around it.
fn code_digest(text: &[u8]) -> String {
    let mut code = Sha256::new();
    for (place, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        let is_comment = line.starts_with(b"--") && !line.starts_with(b"--[");
        let names_program = place == 0 && line.starts_with(b"#");
        if !(line.is_empty() || is_comment || names_program) {
            code.update(line);
            code.update(b"\n");
        }
    }
    code.finalize().iter().fold(String::new(), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_counts() {
        let plain = code_digest(b"local a = 1\nreturn a\n");
        for same in [
            &b"#!/usr/bin/env sysbench\r\n-- a comment\r\n\r\nlocal a = 1\r\n  return a"[..],
            b"local a = 1 \n\n\treturn a\n\n",
        ] {
            assert_eq!(code_digest(same), plain);
        }
        for other in [
            &b"local a = 2\nreturn a\n"[..],
            b"--[[\nlocal a = 1\nreturn a\n--]]\n",
            b"local a = 1\n#return a\nreturn a\n",
        ] {
            assert_ne!(code_digest(other), plain);
        }
    }
}
