//! A program in the background, which ends with the test that started it, however that ends.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// Kills what runs when it is dropped: a test that fails leaves nothing behind.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn by(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program runs"))
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // What has ended by itself cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
