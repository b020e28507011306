//! Scaling.
