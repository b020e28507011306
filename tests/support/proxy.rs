//! A network between two processes of a test that can be cut.

use std::io::copy;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to another port of this machine.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its number").port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (cut, all) = (Arc::clone(&is_cut), Arc::clone(&open));
        thread::spawn(move || {
            for here in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(there) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { continue };
                let _ = here.set_nodelay(true).and(there.set_nodelay(true));
                let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
                all.lock().expect("nobody panics").extend([clone(&here), clone(&there)]);
                for (mut from, mut to) in [(clone(&here), clone(&there)), (there, here)] {
                    thread::spawn(move || {
                        // A cut ends both directions; an end of one side ends the other.
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { port, is_cut, open }
    }

    /// Ends every connection, and lets no new one through.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().expect("nobody panics").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn restore(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}
