//! `config.toml` with any content: it either locates the store, or is refused with a message that contains no password.

use std::cell::RefCell;

use ops::OpError;
use ops::home::location::{DATABASE, LocationArgs, StoreAddress, locate};
use tempfile::TempDir;

use super::file::write_new;
use super::message;

pub const TOKENS: &[&str] = &[
    "store",
    "stroe",
    "=",
    " = ",
    "\"",
    "'",
    "\"\"\"",
    "\n",
    "\r",
    "#",
    "[",
    "]",
    "[store]",
    "[[store]]",
    "{",
    "}",
    ".",
    "\"queue.db\"",
    "\"/tmp/queue.db\"",
    "\"postgres://user:hunter2@host/db\"",
    "mysql://user:hunter2@host",
    "://",
    "POSTGRES://",
    "\\u0000",
    "\\u001b",
    "1979-05-27T07:32:00Z",
    "1e400",
    "true",
    "\0",
    "\u{1b}",
    "\u{feff}",
];

/// The secret in the inputs, as it appears in a URL.
const PASSWORD: &str = ":hunter2@";

thread_local! {
    static HOME: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    HOME.with_borrow_mut(|home| {
        let home = home.get_or_insert_with(|| tempfile::tempdir().expect("a temporary folder")).path();
        write_new(&home.join("config.toml"), data);
        match locate(&LocationArgs { home: Some(home.to_owned()), store: None }) {
            Ok(location) => {
                assert_eq!(location.home, home);
                let text = std::str::from_utf8(data).expect("an accepted file is UTF-8");
                let is_named = text.contains("store");
                match location.store {
                    StoreAddress::Sqlite(store) => {
                        assert!(is_named || store == home.join(DATABASE), "{text:?}");
                        assert!(!store.to_string_lossy().contains("://"), "{} is a URL", store.display());
                    }
                    StoreAddress::Postgres(address) => {
                        assert!(is_named && !format!("{address} {address:?}").contains(PASSWORD), "{text:?}");
                    }
                }
            }
            Err(error) => check(&error, data),
        }
    });
}

fn check(error: &OpError, data: &[u8]) {
    message::check(error, data);
    let message = error.to_string();
    assert!(!message.contains(PASSWORD), "{message:?}");
    let is_expected = matches!(
        error,
        OpError::BadConfigFile { .. }
            | OpError::Address(_)
            | OpError::ExposedPassword { .. }
            | OpError::UnknownStore
            | OpError::EmptyStore
    );
    let is_text = std::str::from_utf8(data).is_ok();
    assert!(is_expected || (!is_text && matches!(error, OpError::CannotRead { .. })), "{error:?}");
}
