//! What the recorder wrote down, read back. Its `enum kind` and `struct head` are the other half of this.

use std::fs;
use std::path::Path;

/// One record. Positions in the list of records are the time that everything else here is told in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file or pipe was made.
    Create {
        inode: u64,
        path: String,
        is_pipe: bool,
    },
    MakeFolder {
        path: String,
    },
    /// The file with this inode was changed.
    Change {
        inode: u64,
        change: Change,
    },
    Rename {
        inode: u64,
        from: String,
        to: String,
    },
    Remove {
        path: String,
    },
    SyncBegin {
        token: u64,
        target: Target,
    },
    SyncEnd {
        token: u64,
    },
    /// A call is about to print this.
    Say {
        call: String,
        text: Vec<u8>,
    },
    /// A call is about to end.
    End {
        call: String,
    },
}

/// What was done to the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write {
        offset: usize,
        data: Vec<u8>,
    },
    Resize {
        size: usize,
    },
    /// A hole was punched.
    Zero {
        offset: usize,
        length: usize,
    },
}

/// What is synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(u64),
    Folder(String),
}

pub fn read(log: &Path) -> Vec<Record> {
    let bytes = fs::read(log).expect("the record is readable");
    let mut rest = Rest(&bytes);
    let mut records = Vec::new();
    while !rest.0.is_empty() {
        records.push(rest.record());
    }
    records
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn record(&mut self) -> Record {
        let (kind, path_length, data_length, _) = (self.u32(), self.u32(), self.u32(), self.u32());
        let (inode, offset, length) = (self.u64(), self.u64(), self.u64());
        let path = String::from_utf8(self.take(size(path_length)).to_vec()).expect("names here are text");
        let data = self.take(size(data_length)).to_vec();
        match kind {
            1 => Record::Create { inode, path, is_pipe: length != 0 },
            2 => Record::MakeFolder { path },
            3 => Record::Change { inode, change: Change::Write { offset: size(offset), data } },
            4 => Record::Change { inode, change: Change::Resize { size: size(offset) } },
            5 => {
                Record::Change { inode, change: Change::Zero { offset: size(offset), length: size(length) } }
            }
            6 => Record::Rename { inode, from: path, to: text(data) },
            7 => Record::Remove { path },
            8 if offset != 0 => Record::SyncBegin { token: length, target: Target::Folder(path) },
            8 => Record::SyncBegin { token: length, target: Target::File(inode) },
            9 => Record::SyncEnd { token: length },
            10 => Record::Say { call: path, text: data },
            11 => Record::End { call: path },
            12 => panic!("the recorder does not understand `{}` on {path}", text(data)),
            unknown => panic!("there is no record of kind {unknown}"),
        }
    }

    fn take(&mut self, length: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take(8).try_into().expect("eight bytes"))
    }
}

fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("it fits into memory")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("names here are text")
}
