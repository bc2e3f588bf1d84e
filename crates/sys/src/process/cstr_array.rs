//! A list of strings as the system takes them, in one piece: an environment has dozens, and is made for each command.

use std::ffi::{CStr, c_char};
use std::io;

/// A string contains a NUL byte, which would end it early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string contains a NUL byte")]
pub struct HasNul;

impl From<HasNul> for io::Error {
    fn from(has_nul: HasNul) -> Self {
        Self::new(io::ErrorKind::InvalidInput, has_nul)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CList {
    /// One after the other, each with the NUL that ends it.
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CList {
    /// Adds what these parts are together.
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), HasNul> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(HasNul);
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

    /// With a null pointer at the end. They are good as long as the list is.
    pub(crate) fn pointers(&self) -> Vec<*const c_char> {
        let pointer = |start: &usize| self.bytes[*start..].as_ptr().cast();
        self.starts.iter().map(pointer).chain([std::ptr::null()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_were() {
        let mut list = CList::default();
        list.push(&[b"A", b"=", b"1"]).expect("no NUL");
        assert_eq!(list.push(&[b"B", b"\0"]), Err(HasNul));
        list.push(&[]).expect("no NUL");
        list.push(&[b"\xff"]).expect("no NUL");
        let strings: Vec<&[u8]> = list.iter().map(CStr::to_bytes).collect();
        assert_eq!(strings, [b"A=1".as_slice(), b"", b"\xff"]);
        assert_eq!(list.pointers().len(), 4);
    }
}
