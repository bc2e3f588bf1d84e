//! Warns about input that the command does not get.
//!
//! Most callers have a standard input that they do not care about: a terminal, `/dev/null`, the pipe of a cron daemon, an
//! SSH server or a CI system into which nothing is written. So there is a warning only if there are bytes to read: in a
//! pipe or a socket, or in a file of which nothing has been read. Input may also belong to the loop around the call, as in
//! `while read name; do queuectl run convert "$name"; done < names`: then the file was read in part, or the pipe is the
//! standard input of the shell, too.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

use crate::context::Context;
use crate::failure::Failure;
use sys::process::is_input_of_shell;

/// Prints the warning if it is due; returns whether it was.
pub(crate) fn warn(context: &Context) -> Result<bool, Failure> {
    if !has_unread_input(io::stdin()) {
        return Ok(false);
    }
    context
        .hint("the command does not get the input of queuectl; pass it with --stdin, or add < /dev/null")?;
    Ok(true)
}

fn has_unread_input(input: impl AsFd) -> bool {
    let Ok(status) = fstat(&input) else {
        return false;
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo | FileType::Socket => {
            ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0) && !is_input_of_shell(&input)
        }
        FileType::RegularFile => status.st_size > 0 && position(&input) == Some(0),
        FileType::Directory
        | FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => false,
    }
}

/// The position is that of the open file, which the duplicate shares.
fn position(input: &impl AsFd) -> Option<u64> {
    File::from(input.as_fd().try_clone_to_owned().ok()?).stream_position().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write, pipe};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_bytes_that_were_not_read_are_worth_a_warning() {
        assert!(!has_unread_input(File::open("/dev/null").expect("it opens")));
        let (reader, mut writer) = pipe().expect("a pipe");
        assert!(!has_unread_input(&reader), "nothing was written yet");
        writer.write_all(b"x").expect("written");
        assert!(has_unread_input(&reader));
        drop(writer);
        (&reader).read_exact(&mut [0]).expect("read");
        assert!(!has_unread_input(&reader), "it is closed and empty");

        let (near, mut far) = UnixStream::pair().expect("a pair");
        assert!(!has_unread_input(&near));
        far.write_all(b"x").expect("written");
        assert!(has_unread_input(&near));

        let mut file = tempfile::tempfile().expect("a file");
        assert!(!has_unread_input(&file), "it is empty");
        file.write_all(b"ab").expect("written");
        file.rewind().expect("rewound");
        assert!(has_unread_input(&file));
        file.read_exact(&mut [0]).expect("read");
        assert!(!has_unread_input(&file), "another process reads it");
    }
}
