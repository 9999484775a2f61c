//! Which errors a run goes on after.

use crate::error::is_loss;
use serde::Deserialize;

/// Which failed statements begin the event again instead of ending the run.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "ignore_errors must be a list of codes or the word \"all\"")]
pub enum IgnoredErrors {
    /// These error codes.
    Codes(Vec<u16>),
    /// The word `all`.
    Word(String),
}

impl IgnoredErrors {
    /// Whether an event is begun again after this error.
    #[must_use]
    pub fn contains(&self, code: u16) -> bool {
        match self {
            Self::Codes(codes) => codes.contains(&code),
            Self::Word(_) => true,
        }
    }

    /// Whether a lost connection is opened again: one of the codes that say so is ignored.
    #[must_use]
    pub fn survives_loss(&self) -> bool {
        match self {
            Self::Codes(codes) => codes.iter().copied().any(is_loss),
            Self::Word(_) => true,
        }
    }
}

impl Default for IgnoredErrors {
    /// As sysbench: deadlock, a changed row, a lock that was waited for too long.
    fn default() -> Self {
        Self::Codes(vec![1213, 1020, 1205])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_survived_when_a_code_that_says_so_is_ignored() {
        assert!(!IgnoredErrors::default().survives_loss());
        assert!(IgnoredErrors::Codes(vec![1213, 2013]).survives_loss());
        assert!(IgnoredErrors::Word("all".into()).survives_loss());
    }
}
