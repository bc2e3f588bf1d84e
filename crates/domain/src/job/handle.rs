//! How messages name a job.

use std::fmt;

use crate::values::name::JobId;

/// A job in a message: by the id that its caller chose, else by its number, which people can type, and its id, which
/// programs know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHandle {
    pub id: JobId,
    /// `None` if the job does not exist any more.
    pub number: Option<u64>,
}

impl JobHandle {
    /// For a command to type.
    pub fn short(&self) -> String {
        match self.number.filter(|_| self.id.is_generated()) {
            Some(number) => number.to_string(),
            None => self.id.to_string(),
        }
    }
}

impl fmt::Display for JobHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number.filter(|_| self.id.is_generated()) {
            Some(number) => write!(out, "`{number}` ({})", self.id),
            None => write!(out, "`{}`", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_id_comes_with_its_number() {
        let handle = |id: &str, number| JobHandle { id: id.parse().expect("an id"), number };
        for (handle, shown, short) in [
            (handle("build", Some(7)), "`build`", "build"),
            (handle("1m7jfqm7ve1xcd2a9k", Some(7)), "`7` (1m7jfqm7ve1xcd2a9k)", "7"),
            (handle("1m7jfqm7ve1xcd2a9k", None), "`1m7jfqm7ve1xcd2a9k`", "1m7jfqm7ve1xcd2a9k"),
        ] {
            assert_eq!((handle.to_string().as_str(), handle.short().as_str()), (shown, short));
        }
    }
}
