//! One line said to the operator until the next key.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// In one line, safe to show.
    pub(crate) text: String,
    pub(crate) bad: bool,
}

impl Remark {
    pub(crate) fn done(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: false }
    }

    pub(crate) fn failed(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: true }
    }
}
