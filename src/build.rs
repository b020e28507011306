//! Tells the compiler whether `../shared` is there: golden values and real data, which are not
//! shipped.
//!
//! Tests that need it carry `cfg_attr(no_shared, ignore = …)`. Without it `cargo test` counts them
//! as ignored. A test cannot do that by itself once it runs: it could only pass or fail. The same
//! holds for `no_mosquitto`: tests over MQTT start a broker of their own.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(no_shared)");
    println!("cargo::rustc-check-cfg=cfg(no_mosquitto)");
    println!("cargo::rerun-if-changed=src/build.rs");
    println!("cargo::rerun-if-env-changed=PATH");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    if !places.iter().any(|place| place.join("mosquitto").is_file()) {
        println!("cargo::rustc-cfg=no_mosquitto");
    }
    if Path::new("../shared").is_dir() {
        // The smallest part stands for all of it: cargo looks through the whole folder every time.
        println!("cargo::rerun-if-changed=../shared/golden");
    } else {
        // A path that is absent would be built anew every time. The test in `src/shared.rs` fails
        // when the folder has come since.
        println!("cargo::rustc-cfg=no_shared");
    }
}
