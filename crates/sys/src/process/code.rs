//! The memory that the code of this program occupies.

use std::ffi::c_void;
use std::fs;
use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Gives back the memory of all code that has run so far, and of the constants in front of it. A process that needs them
/// again maps them again, page by page, from the kernel's cache of the file.
///
/// For a process that lives long: reading arguments and opening a store run code that it never needs again, and the
/// kernel maps sixteen pages for each one that is touched.
#[expect(unsafe_code, reason = "there is no safe wrapper for madvise(2)")]
pub fn release() {
    let Some(code) = fs::read_to_string("/proc/self/maps").ok().and_then(|maps| own_code(&maps)) else {
        return;
    };
    // SAFETY: the range is mapped from this program's file, and no page of it is ever written to, so each page that the
    // kernel drops is read from the file again with the same bytes.
    let _ = unsafe { madvise(code.start as *mut c_void, code.len(), Advice::LinuxDontNeed) };
}

/// The addresses of the code that contains this function, and of the constants in front of it.
fn own_code(maps: &str) -> Option<Range<usize>> {
    let here = own_code as fn(&str) -> Option<Range<usize>> as usize;
    code_at(here, maps)
}

fn code_at(address: usize, maps: &str) -> Option<Range<usize>> {
    let mappings: Vec<Mapping<'_>> = maps.lines().filter_map(Mapping::parse).collect();
    let index = mappings.iter().position(|mapping| mapping.range.contains(&address))?;
    let code = mappings.get(index).filter(|mapping| mapping.mode == "r-xp")?;
    let before = index.checked_sub(1).and_then(|index| mappings.get(index));
    // The part of a file at offset 0 has its headers. The loader relocates, and so writes to, only later parts.
    let constants = before.filter(|mapping| {
        mapping.mode == "r--p" && mapping.offset == 0 && mapping.range.end == code.range.start
    });
    Some(constants.unwrap_or(code).range.start..code.range.end)
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    range: Range<usize>,
    mode: &'a str,
    offset: usize,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let hex = |text: &str| usize::from_str_radix(text, 16).ok();
        let mut fields = line.split(' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let range = hex(start)?..hex(end)?;
        Some(Self { range, mode: fields.next()?, offset: hex(fields.next()?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_that_cannot_be_written_to_are_found() {
        let maps = |first: &str, offset: &str, second: &str| {
            format!(
                "1000-3000 {first} {offset} fe:00 42   /bin/x\n3000-5000 {second} 2000 fe:00 42   /bin/x\n"
            )
        };
        assert_eq!(code_at(0x4000, &maps("r--p", "00000000", "r-xp")), Some(0x1000..0x5000));
        for (first, offset) in [("rw-p", "00000000"), ("r--p", "00001000"), ("r-xp", "00000000")] {
            assert_eq!(
                code_at(0x4000, &maps(first, offset, "r-xp")),
                Some(0x3000..0x5000),
                "{first} {offset}"
            );
        }
        for second in ["rwxp", "r--p", "rw-p", "r-xs"] {
            assert_eq!(code_at(0x4000, &maps("r--p", "00000000", second)), None, "{second}");
        }
        assert_eq!(code_at(0x6000, &maps("r--p", "00000000", "r-xp")), None);
    }

    #[test]
    fn a_program_runs_on_after_its_code_was_released() {
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let code = own_code(&maps).expect("this function is somewhere");
        let before = resident_kilobytes(&code);
        release();
        let after = resident_kilobytes(&code);
        assert!(after < before, "{after} of {before} kB are still mapped");
    }

    /// The first mapping of the range.
    fn resident_kilobytes(range: &Range<usize>) -> usize {
        let smaps = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let start = format!("{:x}-", range.start);
        let mapping = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let resident = mapping.skip(1).find_map(|line| line.strip_prefix("Rss:")).expect("a line of it");
        resident.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}
