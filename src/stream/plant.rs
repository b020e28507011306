//! Placeholder.
pub fn attack_ids() -> impl Iterator<Item = &'static str> {
    ["S101"].into_iter()
}
