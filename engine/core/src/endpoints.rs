//! Where servers listen, as specs say it: one place, or a list that connections are dealt out to.

use serde::Deserialize;

use crate::session::Endpoint;

/// Where one server listens.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "endpoint must be a host and a port, or a socket"
)]
pub enum EndpointSpec {
    /// A TCP address.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// Path of the socket.
        socket: String,
    },
}

/// One place or several.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "endpoint must be a host and a port, or a socket, or a list of such")]
pub enum Endpoints {
    /// All connections go here.
    One(EndpointSpec),
    /// They are dealt out to these in turn.
    Several(Vec<EndpointSpec>),
}

impl EndpointSpec {
    /// The address to dial.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Self::Tcp { host, port } => Endpoint::Tcp { host: host.clone(), port: *port },
            Self::Unix { socket } => Endpoint::Unix { path: socket.clone() },
        }
    }
}

impl Endpoints {
    /// Where connection `number` goes, counted from 0.
    ///
    /// # Panics
    /// When there is no place at all, which a spec's check refuses.
    #[must_use]
    pub fn of(&self, number: u32) -> Endpoint {
        let places = self.places();
        places[number as usize % places.len()].endpoint()
    }

    /// Whether no place is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    /// How many places there are.
    ///
    /// # Panics
    /// When there are more than fit into 32 bits.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.places().len()).expect("places are counted in 32 bits")
    }

    /// Whether a failure says too little without the place it happened at.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.places().len() > 1
    }

    fn places(&self) -> &[EndpointSpec] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Endpoints, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn connections_are_dealt_out_in_turn() {
        let list =
            parsed(r#"[{"host": "a", "port": 1}, {"socket": "/b"}, {"host": "c", "port": 3}]"#);
        let list = list.expect("a list");
        let dealt: Vec<String> = (0..4).map(|number| list.of(number).to_string()).collect();
        assert_eq!(dealt, ["a:1", "/b", "c:3", "a:1"]);
        assert!(list.are_several());
    }

    #[test]
    fn one_place_takes_all() {
        let one = parsed(r#"{"host": "a", "port": 1}"#).expect("a place");
        assert_eq!((one.of(0), one.of(5)), (one.of(7), one.of(1)));
        assert!(!one.are_several());
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [r#"{"host": "a"}"#, r#"{"socket": "/x", "port": 1}"#, r#"[{"host": 3}]"#] {
            let error = parsed(text).expect_err("no place");
            assert!(error.contains("endpoint must be a host and a port"), "{error}");
        }
        assert!(parsed("[]").expect("an empty list").is_empty());
    }
}
