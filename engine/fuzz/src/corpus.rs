//! The corpus as used by tests: a folder for each fuzz target, with a file for each input.

use std::fs;

/// Runs a target on each of its seeds, and on each seed with every byte in turn changed or all
/// behind it gone.
///
/// # Panics
/// The target panics, or has no seed.
pub fn run(target: &str, read: fn(&[u8])) {
    let folder = format!("{}/../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).expect("a folder of seeds") {
        let path = entry.expect("an entry").path();
        let seed = fs::read(&path).expect("a seed");
        read(&seed);
        for at in 0..seed.len() {
            read(&seed[..at]);
            for change in [0x01, 0x80, 0xff] {
                let mut changed = seed.clone();
                changed[at] ^= change;
                read(&changed);
            }
        }
        seeds += 1;
    }
    assert!(seeds > 0, "{folder} is empty");
}
