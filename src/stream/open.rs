//! From a session to its stream.
