//! Links the program at a fixed address, and in a release build with the C library in it, so that each start loads no
//! library and has no address to correct (docs/adr/0031-a-program-at-a-fixed-address.md).
//!
//! The program that `tools/release` builds is static too, and stays position-independent.

use std::env::var;
use std::fs;
use std::io::Result;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |property: &str| var(format!("CARGO_CFG_TARGET_{property}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") != "linux" || target("ENV") != "gnu" || is_static {
        return Ok(());
    }
    link_with("-no-pie");
    // Tests put faults between a debug build and its C library.
    let is_release = var("PROFILE").is_ok_and(|profile| profile == "release");
    let is_native = var("HOST").ok() == var("TARGET").ok();
    if is_release
        && is_native
        && let Some(libraries) = static_libraries()
    {
        let folder = PathBuf::from(var("OUT_DIR").unwrap_or_default()).join("static");
        fs::create_dir_all(&folder)?;
        for (name, text) in libraries {
            fs::write(folder.join(name), text)?;
        }
        link_with("-static");
        link_with(&format!("-L{}", folder.display()));
    }
    Ok(())
}

/// Static libraries for the names that rustc links dynamically: linker scripts that name the archives of this machine.
/// None where one is missing, as on systems that pack the static C library by itself.
fn static_libraries() -> Option<[(&'static str, String); 3]> {
    let script = |archive: &str| Some(format!("INPUT({})\n", archive_path(archive)?.display()));
    Some([
        ("libc.a", script("libc.a")?),
        ("libm.a", script("libm.a")?),
        ("libgcc_s.a", script("libgcc_eh.a")?),
    ])
}

/// Where the C compiler finds the archive.
fn archive_path(archive: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={archive}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    // The compiler repeats the bare name if it has no such file.
    (path.is_absolute() && path.exists()).then_some(path)
}

fn link_with(argument: &str) {
    println!("cargo::rustc-link-arg-bin=queuectl={argument}");
}
