//! Reads the record. Its format is defined by `enum kind` and `struct head` in `recorder.c`.

use std::fs;
use std::path::Path;

/// One record. All times in this module are positions in the list of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file or pipe was created.
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

/// A change of the content of a file.
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

/// The target of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(u64),
    Folder(String),
}

pub fn read(log: &Path) -> Vec<Record> {
    let bytes = fs::read(log).expect("the record is readable");
    let mut reader = Reader(&bytes);
    let mut records = Vec::new();
    while !reader.0.is_empty() {
        records.push(reader.record());
    }
    records
}

/// The unread bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn record(&mut self) -> Record {
        let (kind, path_length, data_length, _) = (self.u32(), self.u32(), self.u32(), self.u32());
        let (inode, offset, length) = (self.u64(), self.u64(), self.u64());
        let path = String::from_utf8(self.take(size(path_length)).to_vec()).expect("names are UTF-8");
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
            12 => panic!("the recorder does not support `{}` on {path}", text(data)),
            unknown => panic!("unknown kind of record: {unknown}"),
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
    number.try_into().ok().expect("the number fits in memory")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("names are UTF-8")
}
