//! Finding the file that a shell would execute, in the job's own `PATH` and relative to its folder.
//!
//! The result is exactly the path that the shell would pass to the kernel, possibly relative: a script sees it as `$0`.
//! Where shells differ, there is no result.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// dash reads options after a `%` in `PATH`, and some versions of bash expand a `~`.
const UNCLEAR_IN_PATH: &[u8] = b"%~";

/// The program that `word` names, to be executed in `cwd`.
pub(crate) fn find(word: &str, path: Option<&[u8]>, cwd: &Path) -> Option<CString> {
    if word.contains('/') {
        return is_executable(word.as_bytes(), cwd).then(|| CString::new(word).ok()).flatten();
    }
    let path = path.filter(|path| !path.iter().any(|byte| UNCLEAR_IN_PATH.contains(byte)))?;
    let mut candidate = Vec::new();
    for folder in path.split(|byte| *byte == b':') {
        candidate.clear();
        candidate.extend_from_slice(if folder.is_empty() { b"." } else { folder });
        candidate.push(b'/');
        candidate.extend_from_slice(word.as_bytes());
        if is_executable(&candidate, cwd) {
            return CString::new(candidate).ok().filter(|_| is_clear(folder));
        }
    }
    None
}

/// Shells differ in how they write an empty entry and one with a trailing slash.
fn is_clear(folder: &[u8]) -> bool {
    folder.last().is_some_and(|last| *last != b'/')
}

/// Also true for a folder: the spawn then fails, and the shell, as the fallback, searches further.
fn is_executable(program: &[u8], cwd: &Path) -> bool {
    let path = cwd.join(OsStr::from_bytes(program));
    accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder with programs in `bin` and at the top, a file that is not executable, and a folder named like a
    /// program.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("tempdir");
        for (name, mode) in [("bin/tool", 0o700), ("here", 0o700), ("off/tool", 0o600), ("off/text", 0o600)] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folder");
            fs::write(&path, "").expect("file");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
        }
        fs::create_dir_all(folder.path().join("taken/tool")).expect("folder");
        symlink("bin/tool", folder.path().join("link")).expect("link");
        folder
    }

    #[test]
    fn a_program_is_found_as_a_shell_would_find_it() {
        let folder = folder();
        let bin = folder.path().join("bin").display().to_string();
        let absolute = format!("{bin}/tool");
        for (word, path, found) in [
            // With a slash: relative to the job's folder, and with the name as written.
            ("./here", None, Some("./here")),
            ("bin/tool", Some("/none"), Some("bin/tool")),
            ("./link", None, Some("./link")),
            (absolute.as_str(), None, Some(absolute.as_str())),
            ("off/tool", None, None),
            ("./bin", None, Some("./bin")),
            ("./none", None, None),
            // Without a slash: in `PATH`, skipping files that cannot be executed.
            ("tool", Some(bin.as_str()), Some(absolute.as_str())),
            ("tool", Some(&format!("/none:off:{bin}")), Some(absolute.as_str())),
            // A folder: only the spawn shows that it is not a program.
            ("tool", Some(&format!("taken:{bin}")), Some("taken/tool")),
            ("tool", Some("bin"), Some("bin/tool")),
            ("here", Some("."), Some("./here")),
            ("text", Some("off"), None),
            ("here", Some("bin"), None),
            ("here", None, None),
            // An empty entry is the job's folder, but shells differ in how they name a program there; so do they for a
            // trailing `/`.
            ("here", Some(""), None),
            ("here", Some("bin:"), None),
            ("tool", Some(":bin"), Some("bin/tool")),
            ("tool", Some("bin/"), None),
            ("tool", Some("bin:%builtin"), None),
            ("tool", Some("~/bin:bin"), None),
        ] {
            let program = find(word, path.map(str::as_bytes), folder.path());
            assert_eq!(
                program.as_deref().map(|found| found.to_str().expect("UTF-8")),
                found,
                "{word} {path:?}"
            );
        }
    }
}
