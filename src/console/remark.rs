//! One line said to the operator until the next key.

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// In one line, safe to show.
    pub(crate) text: String,
    /// Something went wrong.
    pub(crate) bad: bool,
}

impl Remark {
    /// Something was done.
    #[must_use]
    pub(crate) fn done(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: false }
    }

    /// Something went wrong.
    #[must_use]
    pub(crate) fn failed(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: true }
    }
}
