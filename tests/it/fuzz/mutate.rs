//! Creates a new input by mutating existing ones.

use fastrand::Rng;

/// Longer inputs are truncated.
const MAX_BYTES: usize = 4_096;
const MAX_CHANGES: usize = 5;
const MAX_RUN: usize = 64;

/// Bytes at boundaries: limits of ASCII, of UTF-8 and of numbers, and separators.
const BOUNDARY_BYTES: &[u8] = b"\0\x01\t\n\r\x1b !\"#$'+-./09:;=A[\\]`az{|}~\x7f\x80\x9b\xbf\xc2\xe2\xf0\xff";

/// A copy of a random input with a few changes.
pub fn mutate(random: &mut Rng, inputs: &[Vec<u8>], tokens: &[&str]) -> Vec<u8> {
    let mut bytes = pick(random, inputs).cloned().unwrap_or_default();
    for _ in 0..random.usize(1..=MAX_CHANGES) {
        change(random, &mut bytes, inputs, tokens);
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn change(random: &mut Rng, bytes: &mut Vec<u8>, inputs: &[Vec<u8>], tokens: &[&str]) {
    let at = random.usize(..=bytes.len());
    let end = bytes.len().min(at + random.usize(1..=MAX_RUN));
    match random.u8(..9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.u8(..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.u8(..);
            }
        }
        2 => bytes.insert(at, *pick(random, BOUNDARY_BYTES).expect("the list is not empty")),
        3 => insert(bytes, at, token(random, tokens)),
        4 => {
            let token = token(random, tokens);
            bytes.splice(at..bytes.len().min(at + token.len()), token.bytes());
        }
        5 => drop(bytes.drain(at..end)),
        6 => {
            let run = bytes[at..end].repeat(random.usize(1..4));
            bytes.splice(at..at, run);
        }
        7 => {
            let other = pick(random, inputs).map_or(&[][..], Vec::as_slice);
            let from = random.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => bytes.truncate(at),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, token: &str) {
    bytes.splice(at..at, token.bytes());
}

fn token<'a>(random: &mut Rng, tokens: &[&'a str]) -> &'a str {
    pick(random, tokens).copied().unwrap_or_default()
}

fn pick<'a, T>(random: &mut Rng, of: &'a [T]) -> Option<&'a T> {
    (!of.is_empty()).then(|| &of[random.usize(..of.len())])
}
