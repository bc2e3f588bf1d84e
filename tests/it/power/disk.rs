//! The simulated disk: it applies the records one by one and can lose power between any two of them.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::cut::{Cut, Cutoffs};
use super::file::File;
use super::folder::{Folder, Node};
use super::record::{Record, Target};

#[derive(Clone, Debug)]
pub struct Disk {
    /// How many records have been applied.
    at: usize,
    files: Vec<File>,
    /// The file that has each inode number now; numbers are reused after a file is deleted.
    inodes: HashMap<u64, InodeEntry>,
    /// The first one is the root.
    folders: Vec<Folder>,
    /// The position where each sync began, and its target.
    syncs: HashMap<u64, (usize, SyncTarget)>,
}

#[derive(Clone, Copy, Debug)]
struct InodeEntry {
    file: usize,
    /// False if the records show a change before the creation.
    has_name: bool,
}

/// The data that determine the state after a cut.
struct RestoreContext<'r> {
    records: &'r [Record],
    names: Cutoffs,
    files: Cutoffs,
}

/// The target by identity, not by name, because it may be renamed during the sync.
#[derive(Clone, Copy, Debug)]
enum SyncTarget {
    File(usize),
    Folder(usize),
}

impl Disk {
    /// A disk with the contents of this folder, all synced.
    pub fn holding(folder: &Path) -> Self {
        let folders = vec![Folder::default()];
        let mut disk =
            Self { at: 0, files: Vec::new(), inodes: HashMap::new(), folders, syncs: HashMap::new() };
        disk.load(0, folder);
        disk
    }

    /// Applies all records before this position.
    pub fn advance(&mut self, records: &[Record], to: usize) {
        while self.at < to {
            self.apply(records, self.at);
            self.at += 1;
        }
    }

    fn apply(&mut self, records: &[Record], at: usize) {
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
                    Target::File(inode) => SyncTarget::File(self.file(*inode)),
                    Target::Folder(path) => SyncTarget::Folder(self.folder(path)),
                };
                self.syncs.insert(*token, (at, target));
            }
            Record::SyncEnd { token } => match self.syncs.remove(token).expect("the sync has begun") {
                (began, SyncTarget::File(file)) => self.files[file].sync(records, began),
                (began, SyncTarget::Folder(folder)) => self.folders[folder].sync(began),
            },
            Record::Say { .. } | Record::End { .. } => {}
        }
    }

    /// A new file with this inode. Another process may have opened and changed it before its creator recorded it.
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
        self.inodes.insert(inode, InodeEntry { file, has_name });
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
        assert_eq!(folder, to_folder, "renames stay within a folder: {from} to {to}");
        assert_eq!(self.folders[folder].now.get(old), Some(&node), "{from} is the renamed file");
        self.folders[folder].rename(at, old, new, node);
    }

    /// The folder with this path.
    fn folder(&self, path: &str) -> usize {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(0, |folder, name| match self.folders[folder].now.get(name) {
            Some(Node::Folder(inner)) => *inner,
            other => panic!("{path} is not a folder: {other:?}"),
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
            let name = entry.file_name().into_string().expect("names are UTF-8");
            let meta = entry.metadata().expect("metadata");
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

    /// Writes the state after this cut into an empty folder.
    pub fn restore(&self, records: &[Record], cut: &Cut, to: &Path) {
        assert_eq!(cut.at, self.at, "the disk is at the position of the cut");
        let mut context = RestoreContext { records, names: cut.name_cutoffs(), files: cut.file_cutoffs() };
        self.restore_folder(0, to, &mut context);
    }

    fn restore_folder(&self, folder: usize, to: &Path, context: &mut RestoreContext<'_>) {
        for (name, node) in self.folders[folder].names(&mut context.names) {
            let path = to.join(name);
            match node {
                Node::Folder(inner) => {
                    fs::DirBuilder::new().mode(0o700).create(&path).expect("the folder is created");
                    self.restore_folder(inner, &path, context);
                }
                Node::Pipe => mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("the pipe is created"),
                Node::File(file) => {
                    let bytes = self.files[file].content(context.records, &mut context.files);
                    let mut made = fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
                    let file = made.as_mut().expect("the file is created");
                    file.write_all(&bytes).expect("the file is written");
                }
            }
        }
    }
}
