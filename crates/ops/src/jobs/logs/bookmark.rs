//! Continuing to read an output where another reader was, which an index of a long output does.

use super::parts::PartReader;
use super::reader::FilePlace;
use super::{AttemptOutput, Source};
use crate::OpError;
use store::Store;

/// A place between two pieces of an output.
#[derive(Clone, Debug)]
pub struct Bookmark(Place);

#[derive(Clone, Debug)]
enum Place {
    File(FilePlace),
    Parts(PartReader),
}

impl Bookmark {
    /// How far it is from the beginning, in bytes as they are stored.
    pub fn offset(&self) -> u64 {
        match &self.0 {
            Place::File(place) => place.at(),
            Place::Parts(reader) => reader.at(),
        }
    }
}

impl AttemptOutput {
    /// Where this reader is. `None` if it has found no output yet, or one that is short enough to be read from the
    /// beginning.
    pub fn bookmark(&self) -> Result<Option<Bookmark>, OpError> {
        Ok(match &self.source {
            Source::Unknown | Source::Stored(_) => None,
            Source::File(reader) => Some(Bookmark(Place::File(reader.place()?))),
            Source::Parts(reader) => Some(Bookmark(Place::Parts(reader.clone()))),
        })
    }

    /// Continues at a bookmark. `false`: what was printed before it has changed, because the middle of the output was cut
    /// out or the output is kept elsewhere now; the reader is where it was.
    pub fn resume(
        &mut self,
        store: &dyn Store,
        has_ended: bool,
        bookmark: &Bookmark,
    ) -> Result<bool, OpError> {
        if let Source::Unknown = self.source {
            self.find(store, has_ended)?;
        }
        match (&mut self.source, &bookmark.0) {
            (Source::File(reader), Place::File(place)) => reader.resume(place),
            (Source::Parts(reader), Place::Parts(place)) => {
                let is_whole = place.is_whole(store, &self.id, self.attempt)?;
                if is_whole {
                    *reader = place.clone();
                }
                Ok(is_whole)
            }
            (Source::Unknown | Source::Stored(_) | Source::File(_) | Source::Parts(_), _) => Ok(false),
        }
    }

    /// Whether nothing before a bookmark was cut out while this reader continued from it.
    pub fn is_after(&self, bookmark: &Bookmark) -> bool {
        match (&self.source, &bookmark.0) {
            (Source::File(reader), Place::File(place)) => reader.is_after(place),
            (Source::Unknown | Source::Stored(_) | Source::File(_) | Source::Parts(_), _) => true,
        }
    }
}
