//! The JSON form of a diagnosis.

use serde::Serialize;

use super::{Diagnosis, Finding};

#[derive(Debug, Serialize)]
pub struct DiagnosisJson<'a> {
    ok: bool,
    /// How many contradictions `doctor --repair` repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<usize>,
    /// The contradictions that remain after the repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Vec<&'a str>>,
    findings: &'a [Finding],
}

impl<'a> DiagnosisJson<'a> {
    /// `repaired`: how many contradictions were repaired before this diagnosis, if a repair was requested.
    pub fn new(diagnosis: &'a Diagnosis, repaired: Option<usize>) -> Self {
        let left = diagnosis.contradictions.iter().map(|left| left.message.as_str());
        Self {
            ok: diagnosis.is_ok(),
            repaired,
            left: repaired.map(|_| left.collect()),
            findings: &diagnosis.findings,
        }
    }
}
