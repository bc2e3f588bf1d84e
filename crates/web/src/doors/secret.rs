//! Random secrets, and comparing them.

use std::fmt::Write;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// How many random bytes a secret has.
pub(crate) const SECRET_BYTES: usize = 32;

/// A hash of a secret, which may be stored.
pub(crate) type SecretHash = [u8; 32];

/// Fills an array from the system's random numbers.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// A number for what needs no secret; zero where the system has none.
pub(crate) fn random_number() -> u64 {
    random().map(u64::from_ne_bytes).unwrap_or_default()
}

/// A secret of 256 random bits, as text.
pub(crate) fn new_secret() -> io::Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>()?))
}

pub(crate) fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

pub(crate) fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Compares in a time that does not depend on where they differ.
pub(crate) fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_equal_bytes_are_equal() {
        assert!(is_equal(b"abc", b"abc") && is_equal(b"", b""));
        assert!(!is_equal(b"abc", b"abd") && !is_equal(b"xbc", b"abc"));
        assert!(!is_equal(b"abc", b"ab") && !is_equal(b"ab", b"abc"));
    }

    /// A comparison that ended at the first difference would be thousands of times faster for the first of these.
    #[test]
    fn the_time_does_not_tell_where_the_first_difference_is() {
        const LENGTH: usize = 1 << 18;
        let fastest = |differs_at: usize| {
            let (known, mut guess) = (vec![7; LENGTH], vec![7; LENGTH]);
            guess[differs_at] = 8;
            let compare = |_| {
                let began = Instant::now();
                assert!(!is_equal(black_box(&known), black_box(&guess)));
                began.elapsed()
            };
            (0..20).map(compare).min().expect("some rounds")
        };
        let (early, late) = (fastest(0), fastest(LENGTH - 1));
        assert!(early * 4 > late && late * 4 > early, "{early:?} for the first byte, {late:?} for the last");
    }

    #[test]
    fn secrets_have_256_bits_and_differ() {
        let (one, other) = (new_secret().expect("random"), new_secret().expect("random"));
        assert_ne!(one, other);
        assert_eq!(URL_SAFE_NO_PAD.decode(one).expect("base64").len(), SECRET_BYTES);
    }
}
