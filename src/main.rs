//! The `queuectl` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    queuectl::cli::main()
}
