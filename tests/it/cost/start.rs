//! What the loader has to do before `main`.

use std::fs;
use std::process::Command;

use crate::cli::harness::PROGRAM;

/// The type of an ELF file whose addresses are fixed.
const ET_EXEC: u16 = 2;
const ELF_TYPE_AT: usize = 16;

/// A position-independent program of this size has 11,000 addresses that the loader corrects at each start, in 50 pages
/// that it copies for that.
#[test]
fn the_loader_corrects_no_addresses_in_the_program() {
    let program = fs::read(PROGRAM).expect("the program");
    let bytes = [program[ELF_TYPE_AT], program[ELF_TYPE_AT + 1]];
    assert_eq!(u16::from_ne_bytes(bytes), ET_EXEC, "`{PROGRAM}` is linked at a fixed address");
}

/// Each library takes a tenth of the time in which `/bin/true` starts and ends. A release build contains even this one.
#[test]
fn the_loader_loads_at_most_the_c_library() {
    let listed = Command::new("ldd").arg(PROGRAM).output().expect("ldd, of the C library");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let libraries: Vec<&str> =
        listed.lines().filter_map(|line| line.trim().split_once(" => ")).map(|(name, _)| name).collect();
    let expected: &[&str] = if cfg!(debug_assertions) { &["libc.so.6"] } else { &[] };
    assert_eq!(libraries, expected, "{listed}");
}
