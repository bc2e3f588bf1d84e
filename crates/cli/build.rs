//! Links the program at a fixed address, so that the loader has no addresses in it to correct at each start
//! (docs/adr/0031-a-program-at-a-fixed-address.md).
//!
//! The program that `tools/release` builds is static and stays position-independent.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |property: &str| var(format!("CARGO_CFG_TARGET_{property}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bin=queuectl=-no-pie");
    }
}
