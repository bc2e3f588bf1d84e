//! The password file, `~/.pgpass`: a line is `host:port:database:user:password`, the first that matches counts.
//!
//! `*` matches every value; `\:` and `\\` stand for the characters themselves. The host of a socket is `localhost` or the
//! folder of the socket.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::password::Password;
use super::{Address, DEFAULT_SOCKET_FOLDER, Host};

const OTHERS: u32 = 0o077;

#[derive(Debug, thiserror::Error)]
pub enum PasswordFileError {
    #[error("the password file `{}` has access for group or others (mode {mode:04o})", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the password file `{}` is not a plain file", path.display())]
    NotFile { path: PathBuf },
    #[error("failed to read the password file `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The password for this host. A file that does not exist has none.
pub(super) fn find(
    path: &Path,
    address: &Address,
    host: &Host,
) -> Result<Option<Password>, PasswordFileError> {
    let unreadable = |source| PasswordFileError::Unreadable { path: path.to_owned(), source };
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(meta) if !meta.is_file() => return Err(PasswordFileError::NotFile { path: path.to_owned() }),
        Ok(meta) if meta.mode() & OTHERS != 0 => {
            return Err(PasswordFileError::Exposed { path: path.to_owned(), mode: meta.mode() & 0o7777 });
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(find_in(&text, address, host))
}

fn find_in(text: &str, address: &Address, host: &Host) -> Option<Password> {
    let port = host.port().to_string();
    let (name, other_name) = match host {
        Host::Tcp { name, .. } => (name.clone(), None),
        Host::Unix { folder, .. } if folder == Path::new(DEFAULT_SOCKET_FOLDER) => {
            (folder.display().to_string(), Some("localhost"))
        }
        Host::Unix { folder, .. } => (folder.display().to_string(), None),
    };
    let fits = |field: &str, value: &str| field == "*" || unescape(field) == value;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| match fields.as_slice() {
        [host, its_port, database, user, password]
            if (fits(host, &name) || other_name.is_some_and(|name| fits(host, name)))
                && fits(its_port, &port)
                && fits(database, &address.database)
                && fits(user, &address.user) =>
        {
            Some(Password::new(unescape(password)))
        }
        _ => None,
    })
}

/// The fields of a line, still escaped. The password is the fifth; a further colon ends it.
fn fields(line: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut begin = 0;
    let mut is_escaped = false;
    for (at, character) in line.char_indices() {
        if character == ':' && !is_escaped {
            fields.push(&line[begin..at]);
            begin = at + 1;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    fields.push(&line[begin..]);
    fields.truncate(5);
    fields
}

fn unescape(field: &str) -> String {
    let mut plain = String::with_capacity(field.len());
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        plain.push(escaped.unwrap_or(character));
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn password(line: &str, url: &str) -> Option<String> {
        let address = Address::parse(url).expect("a valid address");
        find_in(line, &address, &address.hosts[0]).map(|password| password.reveal().to_owned())
    }

    #[test]
    fn the_first_line_that_matches_counts() {
        let text = "# db:*:*:*:comment\nother:*:*:*:no\nbad line\ndb:5433:jobs:ann:one\ndb:*:*:*:two\n";
        assert_eq!(password(text, "postgres://ann@db:5433/jobs").as_deref(), Some("one"));
        assert_eq!(password(text, "postgres://bob@db/jobs").as_deref(), Some("two"));
        assert_eq!(password(text, "postgres://bob@elsewhere/jobs"), None);
    }

    #[test]
    fn colons_and_backslashes_are_escaped() {
        assert_eq!(
            password(r"\:\:1:*:*:a\\b:p\:w\\d", r"postgres://a%5Cb@[::1]/j").as_deref(),
            Some(r"p:w\d")
        );
        // As libpq does: a further colon ends the password, and the star is special only alone.
        assert_eq!(password("*:*:*:*:pw:rest", "postgres://a@h/j").as_deref(), Some("pw"));
        assert_eq!(password("h*:*:*:*:pw", "postgres://a@h/j"), None);
    }

    #[test]
    fn a_socket_is_named_by_its_folder_and_the_usual_one_also_as_localhost() {
        assert_eq!(password("localhost:*:*:*:pw", "postgres:///j").as_deref(), Some("pw"));
        assert_eq!(password("localhost:*:*:*:pw", "postgres:///j?host=/run/pg"), None);
        assert_eq!(password("/run/pg:*:*:*:pw", "postgres:///j?host=/run/pg").as_deref(), Some("pw"));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pgpass");
        let address = Address::parse("postgres://a@h/j").expect("a valid address");
        let find = || find(&path, &address, &address.hosts[0]);
        assert!(matches!(find(), Ok(None)));
        fs::write(&path, "*:*:*:*:pw\n").expect("a file");
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        set_mode(0o640);
        let refused = find().expect_err("others can read it");
        assert_eq!(
            refused.to_string(),
            format!("the password file `{}` has access for group or others (mode 0640)", path.display())
        );
        set_mode(0o600);
        assert!(matches!(find(), Ok(Some(_))));
        assert!(matches!(
            super::find(folder.path(), &address, &address.hosts[0]),
            Err(PasswordFileError::NotFile { .. })
        ));
    }
}
