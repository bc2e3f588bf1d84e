//! What to do about a home, or a file of it, that others own or could change.

use std::path::Path;

use domain::text::shell::quote_words;
use sys::fs::ownership::{Flaw, OwnershipError};
use sys::process::user;

/// The next command of a user to whom a home or a file was refused.
pub fn advice(refused: &OwnershipError) -> String {
    let path = word(&refused.path);
    match refused.flaw {
        Flaw::Writable { .. } => format!("`chmod go-w {path}`, or another folder with --home"),
        Flaw::Link => "put the file itself there, or name it with --store".to_owned(),
        Flaw::Foreign { owner: user::ROOT } => {
            format!(
                "`sudo chown {} {path}` if root left it there, else another folder with --home",
                account(user::number())
            )
        }
        Flaw::Foreign { owner } => use_account(owner),
    }
}

/// The same for a home that was found without being named.
pub fn advice_for_found(home: &Path, refused: &OwnershipError) -> String {
    let name_it = format!("name it if it is yours: `--home {}`", word(home));
    match refused.flaw {
        Flaw::Writable { .. } => format!("`chmod go-w {}`, or {name_it}", word(&refused.path)),
        Flaw::Foreign { .. } | Flaw::Link => name_it,
    }
}

/// The same for a home that is not made in the folder of another user.
pub fn advice_for_making(home: &Path, refused: &OwnershipError) -> String {
    match refused.flaw {
        Flaw::Foreign { owner } => {
            format!("{}, or `mkdir -m 700 {}` if it is to be yours", use_account(owner), word(home))
        }
        Flaw::Writable { .. } | Flaw::Link => advice(refused),
    }
}

fn use_account(owner: u32) -> String {
    format!("`sudo -u {} queuectl …` uses it as its owner, --home names another folder", account(owner))
}

/// A user as `sudo -u` and `chown` take it.
fn account(number: u32) -> String {
    user::listed_name(number).unwrap_or_else(|| format!("'#{number}'"))
}

/// A path as a word for the shell.
pub(crate) fn word(path: &Path) -> String {
    quote_words(&[path.display().to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_path_as_the_shell_takes_it() {
        let refused = |flaw| OwnershipError { path: "/a b/queue.db".into(), flaw };
        let writable = refused(Flaw::Writable { mode: 0o666 });
        assert!(advice(&writable).starts_with("`chmod go-w '/a b/queue.db'`"));
        assert!(advice_for_found(Path::new("/a b"), &writable).ends_with("`--home '/a b'`"));
        let foreign = refused(Flaw::Foreign { owner: 4_000_000_000 });
        assert!(advice(&foreign).starts_with("`sudo -u '#4000000000' queuectl …`"));
        assert!(advice_for_making(Path::new("/new"), &foreign).contains("`mkdir -m 700 /new`"));
    }
}
