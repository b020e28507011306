//! A message in the bottom line, shown until the next key.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub text: String,
    pub bad: bool,
}

impl Remark {
    pub(crate) fn done(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: false }
    }

    pub(crate) fn failed(text: &str) -> Self {
        Self { text: super::text::clean(text), bad: true }
    }
}
