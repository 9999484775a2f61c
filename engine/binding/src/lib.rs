//! dbdyno._engine
