//! The simulated disk: it takes the records one by one, and can be cut off from power between any two of them.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::cut::{Cut, Limits};
use super::file::File;
use super::folder::{Folder, Node};
use super::record::{Record, Target};

#[derive(Clone, Debug)]
pub struct Disk {
    /// How many records have happened.
    at: usize,
    files: Vec<File>,
    /// Which file has this inode now: the number is given to another one when a file is gone.
    inodes: HashMap<u64, Known>,
    /// The first is the root.
    folders: Vec<Folder>,
    /// Where a sync began, and what it syncs.
    syncs: HashMap<u64, (usize, SyncOf)>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    file: usize,
    /// Unless it was changed before it was made, as far as the records tell.
    has_name: bool,
}

/// What decides what is found after a cut.
struct After<'r> {
    records: &'r [Record],
    names: Limits,
    files: Limits,
}

/// Identities, not names: what is synced may be renamed meanwhile.
#[derive(Clone, Copy, Debug)]
enum SyncOf {
    File(usize),
    Folder(usize),
}

impl Disk {
    /// A disk that holds what is in this folder, synced, as if it had always been there.
    pub fn holding(folder: &Path) -> Self {
        let folders = vec![Folder::default()];
        let mut disk =
            Self { at: 0, files: Vec::new(), inodes: HashMap::new(), folders, syncs: HashMap::new() };
        disk.load(0, folder);
        disk
    }

    /// Lets everything before this record happen.
    pub fn advance(&mut self, records: &[Record], to: usize) {
        while self.at < to {
            self.take(records, self.at);
            self.at += 1;
        }
    }

    fn take(&mut self, records: &[Record], at: usize) {
        match &records[at] {
            Record::Create { inode, path, is_pipe } => {
                let node = if *is_pipe { Node::Pipe } else { Node::File(self.new_file(*inode)) };
                let (folder, name) = self.place(path);
                self.folders[folder].add(at, name, node);
            }
            Record::MakeFolder { path } => {
                self.folders.push(Folder::default());
                let node = Node::Folder(self.folders.len() - 1);
                let (folder, name) = self.place(path);
                self.folders[folder].add(at, name, node);
            }
            Record::Change { inode, .. } => {
                let file = self.file(*inode);
                self.files[file].change(at);
            }
            Record::Rename { inode, from, to } => self.rename(at, *inode, from, to),
            Record::Remove { path } => {
                let (folder, name) = self.place(path);
                self.folders[folder].remove(at, name);
            }
            Record::SyncBegin { token, target } => {
                let target = match target {
                    Target::File(inode) => SyncOf::File(self.file(*inode)),
                    Target::Folder(path) => SyncOf::Folder(self.folder(path)),
                };
                self.syncs.insert(*token, (at, target));
            }
            Record::SyncEnd { token } => match self.syncs.remove(token).expect("it has begun") {
                (began, SyncOf::File(file)) => self.files[file].sync(records, began),
                (began, SyncOf::Folder(folder)) => self.folders[folder].sync(began),
            },
            Record::Say { .. } | Record::End { .. } => {}
        }
    }

    /// A new file with this inode. Somebody may have opened and changed it before its maker could write it down.
    fn new_file(&mut self, inode: u64) -> usize {
        match self.inodes.get_mut(&inode) {
            Some(known) if !known.has_name => {
                known.has_name = true;
                known.file
            }
            Some(_) | None => self.add_file(inode, File::default(), true),
        }
    }

    fn add_file(&mut self, inode: u64, content: File, has_name: bool) -> usize {
        let file = self.files.len();
        self.files.push(content);
        self.inodes.insert(inode, Known { file, has_name });
        file
    }

    /// The file with this inode.
    fn file(&mut self, inode: u64) -> usize {
        match self.inodes.get(&inode) {
            Some(known) => known.file,
            None => self.add_file(inode, File::default(), false),
        }
    }

    fn rename(&mut self, at: usize, inode: u64, from: &str, to: &str) {
        let node = Node::File(self.file(inode));
        let ((folder, old), (to_folder, new)) = (self.place(from), self.place(to));
        assert_eq!(folder, to_folder, "nothing is moved to another folder: {from} to {to}");
        assert_eq!(self.folders[folder].now.get(old), Some(&node), "{from} is what was renamed");
        self.folders[folder].rename(at, old, new, node);
    }

    /// The folder with this path.
    fn folder(&self, path: &str) -> usize {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(0, |folder, name| match self.folders[folder].now.get(name) {
            Some(Node::Folder(inner)) => *inner,
            other => panic!("{path} is no folder: {other:?}"),
        })
    }

    /// The folder and the name in it.
    fn place<'p>(&self, path: &'p str) -> (usize, &'p str) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.folder(folder), name)
    }

    fn load(&mut self, folder: usize, from: &Path) {
        for entry in fs::read_dir(from).expect("the folder is listed") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("names here are text");
            let meta = entry.metadata().expect("its metadata");
            let node = if meta.is_dir() {
                self.folders.push(Folder::default());
                let inner = self.folders.len() - 1;
                self.load(inner, &entry.path());
                Node::Folder(inner)
            } else {
                let content = fs::read(entry.path()).expect("a file is read");
                Node::File(self.add_file(meta.ino(), File::with_content(content), true))
            };
            self.folders[folder].add(0, &name, node);
        }
        self.folders[folder].sync(usize::MAX);
    }

    /// Writes what is found after this cut into an empty folder.
    pub fn restore(&self, records: &[Record], cut: &Cut, to: &Path) {
        assert_eq!(cut.at, self.at, "the disk is at the moment of the cut");
        let mut after = After { records, names: cut.name_limits(), files: cut.file_limits() };
        self.restore_folder(0, to, &mut after);
    }

    fn restore_folder(&self, folder: usize, to: &Path, after: &mut After<'_>) {
        for (name, node) in self.folders[folder].names(&mut after.names) {
            let path = to.join(name);
            match node {
                Node::Folder(inner) => {
                    fs::DirBuilder::new().mode(0o700).create(&path).expect("a folder is made");
                    self.restore_folder(inner, &path, after);
                }
                Node::Pipe => mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe is made"),
                Node::File(file) => {
                    let content = self.files[file].content(after.records, &mut after.files);
                    let mut made = fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
                    let file = made.as_mut().expect("a file is made");
                    file.write_all(&content).expect("it is written");
                }
            }
        }
    }
}
