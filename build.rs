//! Links the unwinder statically, so that each start of the program loads one shared library less.

use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Where the compiler does not have it, the shared one is as good, only slower to load.
    let found = Command::new("cc").arg(format!("-print-file-name={UNWINDER}")).output();
    let path = found.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    if let Some(folder) = Path::new(path.trim()).parent().filter(|folder| folder.is_absolute()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
