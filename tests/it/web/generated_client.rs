//! The OpenAPI document is usable by programs that know nothing else of the API: a validator of documents accepts it, and a
//! client that is made of it calls the server.
//!
//! `./check` fetches the packages. They are not in the repository: only this test uses them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::client::Server;
use super::rich;
use crate::REPOSITORY;

const SCRIPT: &str = "tests/it/web/generated_client.mjs";
const PACKAGES: &str = "target/tools/node_modules";

#[test]
fn a_client_that_is_made_of_the_document_calls_the_server() {
    let packages = Path::new(REPOSITORY).join(PACKAGES);
    let is_there = ["openapi-client-axios", "@seriousme/openapi-schema-validator"]
        .iter()
        .all(|package| packages.join(package).exists());
    if !is_there || Command::new("node").arg("--version").output().is_err() {
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: node or a package of {PACKAGES} is missing, so no client is made; ./check fetches them"
        );
        return;
    }
    let server = Server::start(rich::home(), &[]);
    let token = server.token("admin");
    let document = server.home.file("openapi.json", web::document());
    // Modules are looked for beside the script.
    let script = packages.join("../generated-client").join(format!("{}.mjs", std::process::id()));
    fs::create_dir_all(script.parent().expect("a folder")).expect("made");
    fs::copy(Path::new(REPOSITORY).join(SCRIPT), &script).expect("copied");
    let mut node = Command::new("node");
    node.arg(&script).arg(document).arg(format!("http://{}", server.address)).env("TOKEN", token);
    let output = node.output().expect("node runs");
    let _ = fs::remove_file(&script);
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    assert_eq!(said[0], "called 12 operations\n", "{}", said[1]);
    assert_eq!(server.home.state_of("made"), "pending");
}
