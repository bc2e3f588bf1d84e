//! Styles and scripts, embedded in the program. Their URL has a hash of all of them, so browsers keep them for ever.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use sha2::{Digest, Sha256};

use crate::doors::secret::in_hex;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::server::Server;

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $content_type:expr) => {
        Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../../assets/", $name)),
        }
    };
}

const ASSETS: &[Asset] = &[
    asset!("queuectl.css", CSS),
    asset!("icon.svg", "image/svg+xml"),
    asset!("page.js", SCRIPT),
    asset!("live.js", SCRIPT),
    asset!("act.js", SCRIPT),
    asset!("choose.js", SCRIPT),
    asset!("log.js", SCRIPT),
    asset!("palette.js", SCRIPT),
    asset!("login.js", SCRIPT),
    asset!("forms.js", SCRIPT),
];

impl Asset {
    /// Debug builds read the file, so that a change of it needs no build.
    fn content(&self) -> Bytes {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/assets"));
        let file = cfg!(debug_assertions).then(|| fs::read(folder.join(self.name)).ok()).flatten();
        let content = file.as_deref().unwrap_or(self.bytes);
        if self.content_type == SCRIPT { without_comments(content) } else { Bytes::copy_from_slice(content) }
    }
}

/// Operators that are served without the blanks around them.
const OPERATORS: [&str; 5] = ["=>", "===", "!==", "&&", "||"];

/// A script without what only its authors read: lines that are comments, indentation, blanks around operators, and the ends
/// of lines after which the next one continues anyway. No string of a script goes over the end of a line or has such an
/// operator, and no comment stands after code.
fn without_comments(script: &[u8]) -> Bytes {
    let is_comment = |line: &[u8]| {
        [&b"//"[..], b"/**", b"* ", b"*/"].iter().any(|mark| line.starts_with(mark)) || line.is_empty()
    };
    let end = |line: &[u8]| match line.last() {
        Some(b';' | b',' | b'{' | b'(' | b'[') => &b""[..],
        Some(_) | None => &b"\n"[..],
    };
    let lines = script.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    let code = lines.filter(|line| !is_comment(line)).flat_map(|line| [line, end(line)]).flatten().copied();
    let mut code = String::from_utf8_lossy(&code.collect::<Vec<u8>>()).into_owned();
    for operator in OPERATORS {
        code = code.replace(&format!(" {operator} "), operator);
    }
    code.into()
}

/// How many bytes of the hash are in a URL.
const HASH_BYTES: usize = 8;

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in ASSETS {
        hash.update(asset.name);
        hash.update(asset.bytes);
    }
    in_hex(&hash.finalize()[..HASH_BYTES])
});

/// Where a browser finds an asset.
pub(crate) fn url(server: &Server, name: &str) -> String {
    server.options.base_path.join(&format!("/a/{}/{name}", *HASH))
}

pub(in crate::pages) fn serve(call: &Call<'_>) -> Result<Answer, Problem> {
    let name = call.param("file");
    let found = ASSETS.iter().find(|asset| asset.name == name && call.param("hash") == *HASH);
    let asset = found.ok_or_else(|| Problem::not_found("there is no such file in this version"))?;
    let answer = Answer::text(StatusCode::OK, asset.content_type, asset.content());
    Ok(answer.with(CACHE_CONTROL, "public, max-age=31536000, immutable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(content_type: &str) -> usize {
        ASSETS
            .iter()
            .filter(|asset| asset.content_type == content_type)
            .map(|asset| asset.content().len())
            .sum()
    }

    #[test]
    fn a_script_is_served_without_its_comments() {
        let script = b"// Says hello.\n/**\n * To whom.\n */\nif (x && y) {\n  hello(\"// x\");\n}\n\n";
        assert_eq!(without_comments(script), "if (x&&y) {hello(\"// x\");}\n");
    }

    /// What [`without_comments`] relies on.
    #[test]
    fn no_string_of_a_script_has_several_lines_and_no_comment_stands_after_code() {
        for asset in ASSETS.iter().filter(|asset| asset.content_type == SCRIPT) {
            let script = String::from_utf8_lossy(asset.bytes);
            for line in script.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
                let marks = line.matches('`').count() - line.matches("\\`").count();
                assert_eq!(marks % 2, 0, "{}: {line}", asset.name);
                assert!(!line.contains("; //") && !line.contains("{ //"), "{}: {line}", asset.name);
                let has_operator =
                    |string: &str| OPERATORS.iter().any(|one| string.contains(&format!(" {one} ")));
                assert!(!line.split('"').skip(1).step_by(2).any(has_operator), "{}: {line}", asset.name);
            }
        }
    }

    #[test]
    fn scripts_and_styles_stay_small() {
        // A page loads page.js and live.js, 14 KB, and of the others what it needs.
        assert!(size(SCRIPT) <= 40 << 10, "{}", size(SCRIPT));
        assert!(size(CSS) <= 30 << 10, "{}", size(CSS));
    }
}
