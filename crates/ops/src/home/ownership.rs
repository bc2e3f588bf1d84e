//! Advice about a home, or a file in it, that other users own or could change.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::location;
use super::location::LocationArgs;
use crate::OpError;
use domain::text::shell::quote_words;
use sys::fs::ownership;
use sys::fs::ownership::{Owner, OwnershipError, OwnershipProblem};
use sys::process::user;

/// The hint for a refused home or file.
pub fn advice(refused: &OwnershipError) -> String {
    let path = word(&refused.path);
    match refused.problem {
        OwnershipProblem::Writable { .. } => {
            format!("run `chmod go-w {path}`, or choose another directory with --home")
        }
        OwnershipProblem::Link => "replace the link with the file, or name the file with --store".to_owned(),
        OwnershipProblem::HardLink | OwnershipProblem::NotFile => how_to_check(&path),
        // A command that gives the file away would do what the owner of the home may have planned.
        OwnershipProblem::Foreign { .. } if ownership::accepted().is_some() => how_to_check(&path),
        OwnershipProblem::Foreign { owner: user::ROOT } => {
            format!(
                "run `sudo chown -R {} {path}` if root created it by mistake, or choose another directory with --home",
                account(user::number())
            )
        }
        OwnershipProblem::Foreign { owner } if user::number() == user::ROOT => {
            let with_flag = "`run`, `status` and `worker start|run|list|stop` also take --foreign-home";
            format!("{}; {with_flag}", use_account(owner))
        }
        OwnershipProblem::Foreign { owner } => use_account(owner),
    }
}

/// The hint for a file in the home of another user that this user may have planted.
fn how_to_check(path: &str) -> String {
    format!("find out where it comes from with `ls -li {path}`, and remove it if it does not belong there")
}

/// Lets this process work in the home of another user, on behalf of that user. Must be called before the home is opened.
pub fn accept_owner(args: &LocationArgs) -> Result<(), OpError> {
    let home = location::find_home(args)?.home;
    let Some(meta) = home.metadata().ok().filter(|meta| meta.uid() != user::number()) else {
        return Ok(());
    };
    if user::number() != user::ROOT {
        return Err(OpError::ForeignHome { home, owner: meta.uid() });
    }
    ownership::accept(Owner { user: meta.uid(), group: meta.gid() });
    Ok(())
}

/// The hint for a home of another user.
pub fn advice_for_owner(home: &Path, owner: u32) -> String {
    advice(&OwnershipError { path: home.to_owned(), problem: OwnershipProblem::Foreign { owner } })
}

/// The hint for a home, or a database outside of it, that does not exist.
pub fn how_to_create(missing: &Path, home: &Path) -> String {
    let store = if missing == home { String::new() } else { format!(" --store {}", word(missing)) };
    format!(
        "check the path; to create a queue there, enqueue the first job: `queuectl --home {}{store} enqueue -- COMMAND`",
        word(home)
    )
}

/// The hint for a refused home that was found without being named.
pub fn advice_for_found(home: &Path, refused: &OwnershipError) -> String {
    let name_it = format!("if it is yours, name it: `--home {}`", word(home));
    match refused.problem {
        OwnershipProblem::Writable { .. } => {
            format!("run `chmod go-w {}`, or, {name_it}", word(&refused.path))
        }
        OwnershipProblem::Foreign { .. }
        | OwnershipProblem::Link
        | OwnershipProblem::HardLink
        | OwnershipProblem::NotFile => name_it,
    }
}

/// The hint for a home that was not created because the folder belongs to another user.
pub fn advice_for_making(home: &Path, refused: &OwnershipError) -> String {
    match refused.problem {
        OwnershipProblem::Foreign { owner } => {
            format!("{}, or create it yourself with `mkdir -m 700 {}`", use_account(owner), word(home))
        }
        OwnershipProblem::Writable { .. }
        | OwnershipProblem::Link
        | OwnershipProblem::HardLink
        | OwnershipProblem::NotFile => advice(refused),
    }
}

fn use_account(owner: u32) -> String {
    format!(
        "run `sudo -u {} queuectl …` to use it as its owner, or choose another directory with --home",
        account(owner)
    )
}

/// A user in the form that `sudo -u` and `chown` accept.
fn account(number: u32) -> String {
    user::listed_name(number).unwrap_or_else(|| format!("'#{number}'"))
}

/// A path quoted for the shell.
pub fn word(path: &Path) -> String {
    quote_words(&[path.display().to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_quotes_paths_for_the_shell() {
        let refused = |problem| OwnershipError { path: "/a b/queue.db".into(), problem };
        let writable = refused(OwnershipProblem::Writable { mode: 0o666 });
        assert!(advice(&writable).starts_with("run `chmod go-w '/a b/queue.db'`"));
        assert!(advice_for_found(Path::new("/a b"), &writable).ends_with("`--home '/a b'`"));
        let foreign = refused(OwnershipProblem::Foreign { owner: 4_000_000_000 });
        assert!(advice(&foreign).starts_with("run `sudo -u '#4000000000' queuectl …`"));
        assert!(advice_for_making(Path::new("/new"), &foreign).contains("`mkdir -m 700 /new`"));
    }
}
