//! Ctrl-C as a wish: the first one asks a long job to stop, the second one ends the program.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first Ctrl-C raises; `kept` says what becomes of what was done so far.
pub(super) fn watch(kept: &'static str) -> Arc<AtomicBool> {
    let wanted = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&wanted);
    // Without this thread Ctrl-C still ends the program, only less gently: not worth an error.
    let _ = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                raised.store(true, Ordering::Relaxed);
                let _ =
                    writeln!(std::io::stderr(), "\nstopping: {kept} (Ctrl-C again leaves at once)");
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        });
    });
    wanted
}
