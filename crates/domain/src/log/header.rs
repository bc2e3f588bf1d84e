//! The header of a log file: its version, and the part that was cut out.
//!
//! ```text
//! magic "qctllog" · version · Cut: at, resume_at, resume_printed (all zero if nothing is cut) · checksum
//! ```
//!
//! The header is rewritten while other processes read, and a read may return a mix of the old and the new one. The
//! checksum detects that.

use super::LogError;

pub const HEADER_BYTES: usize = 40;
const MAGIC: [u8; 7] = *b"qctllog";
const VERSION: u8 = 1;
/// The offset of the checksum, which covers everything before it.
const CHECKSUM_AT: usize = HEADER_BYTES - size_of::<u64>();

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub cut: Option<Cut>,
}

/// The part of a file that was cut out. It begins and ends at the boundary of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The offset at which it begins.
    pub at: u64,
    /// The offset at which the kept output resumes.
    pub resume_at: u64,
    /// How many bytes had been printed before `resume_at`: a reader subtracts the bytes that it has read to learn how many
    /// it missed.
    pub resume_printed: u64,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let cut = self.cut.unwrap_or(Cut { at: 0, resume_at: 0, resume_printed: 0 });
        let mut bytes = [0; HEADER_BYTES];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = VERSION;
        for (field, value) in [cut.at, cut.resume_at, cut.resume_printed].into_iter().enumerate() {
            bytes[8 + 8 * field..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = checksum(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// A header that is being rewritten may decode as damaged.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, LogError> {
        if bytes[..7] != MAGIC {
            return Err(LogError::NotALog);
        }
        if bytes[7] > VERSION {
            return Err(LogError::TooNew);
        }
        if word(bytes, CHECKSUM_AT) != checksum(&bytes[..CHECKSUM_AT]) {
            return Err(LogError::Damaged);
        }
        let cut = Cut { at: word(bytes, 8), resume_at: word(bytes, 16), resume_printed: word(bytes, 24) };
        Ok(Self { cut: (cut.resume_at > 0).then_some(cut) })
    }
}

fn word(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
