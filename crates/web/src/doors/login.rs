//! Login links for a browser.
//!
//! A running server leaves a key in the file `dashboard.json` of the home, which only the owner can read. A code is a
//! time, a random number and their authentication with that key. So `queuectl dashboard link` makes one without asking
//! the server, and the server needs to remember only the codes that were used. A code stands in the fragment of the
//! link: browsers send that to no server, so it is in no log and in no `Referer`.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::secret;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::upkeep::backup::NewFile;
use sys::fs::owner_only;
use sys::fs::ownership;
use sys::process;

/// The name of the file in a home.
const FILE: &str = "dashboard.json";
/// A code is valid for this long, and once.
const CODE_LIFE: Duration = Duration::from_secs(5 * 60);
const TIME_BYTES: usize = 8;
const NONCE_BYTES: usize = 16;
const MAC_BYTES: usize = 16;
const CODE_BYTES: usize = TIME_BYTES + NONCE_BYTES + MAC_BYTES;
const KEY_BYTES: usize = 32;
const MAX_FILE_BYTES: u64 = 64 << 10;

/// What a running server says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningServer {
    pub pid: u32,
    /// Where it answers.
    pub url: String,
    key: String,
}

/// The server that runs in this home, if there is one.
pub fn running(home: &Path) -> std::io::Result<Option<RunningServer>> {
    let path = home.join(FILE);
    let Some(file) = owner_only::open_regular(&path)? else {
        return Ok(None);
    };
    ownership::check(&path, &file.metadata()?).map_err(std::io::Error::other)?;
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    let server: RunningServer = serde_json::from_slice(&text)?;
    Ok(process::name(server.pid).map(|_| server))
}

/// A link that logs a browser in, once and soon.
pub fn new_link(server: &RunningServer, now: Timestamp) -> std::io::Result<String> {
    let key = URL_SAFE_NO_PAD.decode(&server.key).map_err(std::io::Error::other)?;
    Ok(format!("{}/login#{}", server.url, new_code(&key, now)?))
}

fn new_code(key: &[u8], now: Timestamp) -> std::io::Result<String> {
    let expires = now.saturating_add(CODE_LIFE).as_millis().to_be_bytes();
    let mut code = [&expires[..], &secret::random::<NONCE_BYTES>()?].concat();
    let mac = mac_of(key, &code);
    code.extend(mac);
    Ok(URL_SAFE_NO_PAD.encode(code))
}

fn mac_of(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(message);
    mac.finalize().into_bytes()[..MAC_BYTES].to_vec()
}

/// The codes of one server.
#[derive(Debug)]
pub(crate) struct Codes {
    key: [u8; KEY_BYTES],
    /// Used codes, until they expire.
    used: Mutex<HashMap<Vec<u8>, i64>>,
}

impl Codes {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { key: secret::random()?, used: Mutex::default() })
    }

    /// Whether this code is valid; it is not afterwards.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> bool {
        let Ok(code) = URL_SAFE_NO_PAD.decode(code) else {
            return false;
        };
        if code.len() != CODE_BYTES {
            return false;
        }
        let (message, mac) = code.split_at(TIME_BYTES + NONCE_BYTES);
        let expires = message.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
        let now = now.as_millis();
        let Some(expires) = expires.filter(|_| secret::is_equal(&mac_of(&self.key, message), mac)) else {
            return false;
        };
        if expires <= now {
            return false;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, expires| *expires > now);
        used.insert(message.to_vec(), expires).is_none()
    }

    /// Lets `queuectl dashboard link` make links for this server, until the result is dropped.
    pub(crate) fn announce(&self, home: &Path, url: &str) -> Result<Announcement, OpError> {
        let path = home.join(FILE);
        let server = RunningServer {
            pid: std::process::id(),
            url: url.to_owned(),
            key: URL_SAFE_NO_PAD.encode(self.key),
        };
        match write_file(&path, &serde_json::to_vec(&server)?) {
            // The first link is printed all the same.
            Err(OpError::CannotMake { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => {}
            written => written?,
        }
        Ok(Announcement { path, server })
    }
}

fn write_file(path: &Path, text: &[u8]) -> Result<(), OpError> {
    let new = NewFile::create(path, true)?;
    let write = || new.open()?.write_all(text);
    write().map_err(|source| OpError::CannotMake { path: path.to_owned(), source })?;
    new.publish()
}

/// The file that a running server leaves.
#[derive(Debug)]
pub(crate) struct Announcement {
    path: PathBuf,
    pub(crate) server: RunningServer,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Another server of this home may have replaced it.
        let home = owner_only::folder_of(&self.path);
        if running(home).is_ok_and(|found| found.is_some_and(|found| found.pid == self.server.pid)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_valid_once_and_for_five_minutes() {
        let codes = Codes::new().expect("random");
        let now = Timestamp::EPOCH.saturating_add(Duration::from_secs(1_000_000));
        let code = new_code(&codes.key, now).expect("random");
        assert!(codes.take(&code, now) && !codes.take(&code, now));
        let late = new_code(&codes.key, now).expect("random");
        assert!(!codes.take(&late, now.saturating_add(CODE_LIFE)));
        let foreign = new_code(&[7; KEY_BYTES], now).expect("random");
        assert!(!codes.take(&foreign, now) && !codes.take("", now) && !codes.take("!", now));
        let mut forged = URL_SAFE_NO_PAD.decode(new_code(&codes.key, now).expect("random")).expect("base64");
        forged[0] = forged[0].wrapping_add(1);
        assert!(!codes.take(&URL_SAFE_NO_PAD.encode(forged), now), "a later end is not ours");
    }

    #[test]
    fn a_link_is_made_from_the_file_of_a_running_server() {
        let home = tempfile::tempdir().expect("a folder");
        assert!(running(home.path()).expect("no file").is_none());
        let codes = Codes::new().expect("random");
        let announcement = codes.announce(home.path(), "http://127.0.0.1:7878").expect("written");
        let server = running(home.path()).expect("read").expect("it runs");
        let now = Timestamp::EPOCH.saturating_add(Duration::from_secs(1_000_000));
        let link = new_link(&server, now).expect("a link");
        let code = link.strip_prefix("http://127.0.0.1:7878/login#").expect("a login link");
        assert!(codes.take(code, now));
        drop(announcement);
        assert!(running(home.path()).expect("no file").is_none());
    }
}
