//! Capabilities of client and server: bits of a 32-bit number, agreed in the handshake.

/// 4.1 and newer password handling; to MariaDB it also means "a MySQL client".
pub const LONG_PASSWORD: u32 = 1;
/// Flags of columns take two bytes.
pub const LONG_FLAG: u32 = 1 << 2;
/// The handshake response names a database.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// After the login everything travels in compressed frames.
pub const COMPRESS: u32 = 1 << 5;
/// The client answers when the server asks for a file.
pub const LOCAL_FILES: u32 = 1 << 7;
/// The messages of 4.1 and newer; everything here is written for them.
pub const PROTOCOL_41: u32 = 1 << 9;
/// The rest of the session is TLS.
pub const SSL: u32 = 1 << 11;
/// OK and EOF carry status flags.
pub const TRANSACTIONS: u32 = 1 << 13;
/// The authentication answer is preceded by its length.
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// Several statements in a query.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// Several result sets in the reply to a query.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// Several result sets in the reply to a prepared statement.
pub const PS_MULTI_RESULTS: u32 = 1 << 18;
/// The authentication plugin is named.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// The client describes itself in key-value pairs.
pub const CONNECT_ATTRS: u32 = 1 << 20;
/// The length of the authentication answer is a length-encoded integer.
pub const PLUGIN_AUTH_LENENC_DATA: u32 = 1 << 21;
/// No EOF after column definitions, and an OK in place of the EOF after rows.
pub const DEPRECATE_EOF: u32 = 1 << 24;

/// A server without these is too old for this client.
pub const REQUIRED: u32 = PROTOCOL_41 | SECURE_CONNECTION;

/// Wishes of the load generator, agreed where the server offers them. `MULTI_STATEMENTS` and
/// `LOCAL_FILES` are left out on purpose: no workload needs them, and without them no reply can ask
/// for a file. Only sessions for filling tables ask for `LOCAL_FILES`.
pub const CLIENT: u32 = LONG_PASSWORD
    | LONG_FLAG
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | DEPRECATE_EOF;

/// Capabilities of the reference server.
pub const SERVER: u32 =
    CLIENT | LOCAL_FILES | CONNECT_WITH_DB | CONNECT_ATTRS | PLUGIN_AUTH_LENENC_DATA;
