//! A program in the background, which ends with the test that started it, however that ends.

use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output};

/// Kills what runs when it is dropped: a test that fails leaves nothing behind.
pub(crate) struct Started(Option<Child>);

impl Started {
    pub(crate) fn by(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("the program runs")))
    }

    /// Waits for its end, and gives what it said.
    pub(crate) fn wait_with_output(mut self) -> io::Result<Output> {
        self.0.take().expect("it is waited for once").wait_with_output()
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it was not waited for")
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it was not waited for")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        // What has ended by itself cannot be killed, and need not be.
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_test_that_fails_leaves_no_program_behind() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (send, receive) = std::sync::mpsc::channel();
    let failed = std::thread::spawn(move || {
        let mut command = super::live::program(folder.path());
        command.args(["run", "plant-live"]).stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let started = Started::by(&mut command);
        send.send(started.id()).expect("somebody listens");
        panic!("this test of a test fails, as it should");
    });
    let id = receive.recv().expect("the number of the program");
    assert!(failed.join().is_err(), "it fails");
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists(), "{id} is still there");
}
