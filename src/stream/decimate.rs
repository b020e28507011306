//! Block means.
