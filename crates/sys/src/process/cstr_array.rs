//! An array of C strings in one allocation: an environment has dozens of strings and is built for each command.

use std::ffi::CStr;
use std::io;

/// A string contains a NUL byte, which would terminate it early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string contains a NUL byte")]
pub struct NulByte;

impl From<NulByte> for io::Error {
    fn from(error: NulByte) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CstrArray {
    /// The strings one after the other, each with its terminating NUL.
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CstrArray {
    /// With room for this many strings that have this many bytes together.
    pub fn with_capacity(strings: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), starts: Vec::with_capacity(strings) }
    }

    /// Adds the concatenation of these parts.
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), NulByte> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(NulByte);
        }
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.starts.iter().filter_map(|start| CStr::from_bytes_until_nul(&self.bytes[*start..]).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_returned_unchanged() {
        let mut list = CstrArray::default();
        list.push(&[b"A", b"=", b"1"]).expect("no NUL");
        assert_eq!(list.push(&[b"B", b"\0"]), Err(NulByte));
        list.push(&[]).expect("no NUL");
        list.push(&[b"\xff"]).expect("no NUL");
        let strings: Vec<&[u8]> = list.iter().map(CStr::to_bytes).collect();
        assert_eq!(strings, [b"A=1".as_slice(), b"", b"\xff"]);
    }
}
