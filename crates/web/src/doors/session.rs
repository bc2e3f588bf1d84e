//! Sessions of browsers. They live in this process, and end after twelve idle hours or with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret;
use super::secret::SecretHash;

/// A session that was not used for this long has ended.
const IDLE_LIMIT: Duration = Duration::from_secs(12 * 3_600);
/// With more sessions, the one that was idle for the longest time ends.
const MAX_SESSIONS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    live: Mutex<HashMap<SecretHash, Session>>,
}

#[derive(Clone, Debug)]
struct Session {
    token: String,
    used_at: Instant,
}

/// The secrets of a new session.
#[derive(Clone, Debug)]
pub(crate) struct NewSession {
    /// For the cookie.
    pub(crate) cookie: String,
    /// What every change must show beside the cookie; another site cannot read it.
    pub(crate) token: String,
}

/// A live session.
#[derive(Clone, Debug)]
pub(crate) struct LiveSession {
    pub(crate) key: SecretHash,
    pub(crate) token: String,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SecretHash, Session>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) -> std::io::Result<NewSession> {
        let (cookie, token) = (secret::new_secret()?, secret::new_secret()?);
        let mut live = self.lock();
        live.retain(|_, session| session.used_at.elapsed() < IDLE_LIMIT);
        let oldest = live.iter().min_by_key(|(_, session)| session.used_at).map(|(key, _)| *key);
        if let (true, Some(oldest)) = (live.len() >= MAX_SESSIONS, oldest) {
            live.remove(&oldest);
        }
        live.insert(secret::hash(&cookie), Session { token: token.clone(), used_at: Instant::now() });
        Ok(NewSession { cookie, token })
    }

    /// The session of a cookie. Only its hash is looked up, so the time tells nothing about the secret.
    pub(crate) fn find(&self, cookie: &str) -> Option<LiveSession> {
        let key = secret::hash(cookie);
        let mut live = self.lock();
        let session = live.get_mut(&key).filter(|session| session.used_at.elapsed() < IDLE_LIMIT)?;
        session.used_at = Instant::now();
        Some(LiveSession { key, token: session.token.clone() })
    }

    /// What a change by this session must show.
    pub(crate) fn token(&self, key: &SecretHash) -> Option<String> {
        self.lock().get(key).map(|session| session.token.clone())
    }

    pub(crate) fn end(&self, key: &SecretHash) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = Sessions::default();
        let new = sessions.begin().expect("random");
        let found = sessions.find(&new.cookie).expect("it is live");
        assert_eq!(found.token, new.token);
        assert!(sessions.find(&new.token).is_none() && sessions.find("").is_none());
        sessions.end(&found.key);
        assert!(sessions.find(&new.cookie).is_none());
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let sessions = Sessions::default();
        let first = sessions.begin().expect("random");
        for _ in 0..MAX_SESSIONS {
            sessions.begin().expect("random");
        }
        assert_eq!(sessions.lock().len(), MAX_SESSIONS);
        assert!(sessions.find(&first.cookie).is_none(), "the oldest has ended");
    }
}
