//! Compiles the shim.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the library, which is built once per process. Concurrent builds replace it with an identical file.
pub(super) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(build)
}

fn build() -> PathBuf {
    let source = Path::new(crate::REPOSITORY).join("tests/it/chaos/shim/shim.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("queuectl-shim.so");
    let new = folder.join(format!("queuectl-shim.{}.so", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
    let built = compiler.arg(&new).arg(&source).arg("-ldl").output().expect("a C compiler is installed");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the shim does not compile: {said}");
    std::fs::rename(&new, &library).expect("the library is renamed");
    library
}
