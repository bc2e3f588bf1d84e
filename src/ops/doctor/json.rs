//! The JSON shape of a diagnosis.

use serde::Serialize;

use super::{Diagnosis, Finding};

#[derive(Debug, Serialize)]
pub struct DiagnosisJson<'a> {
    ok: bool,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Debug, Serialize)]
struct FindingJson<'a> {
    check: &'static str,
    level: &'static str,
    said: &'a str,
    advice: Option<&'a str>,
}

impl<'a> From<&'a Diagnosis> for DiagnosisJson<'a> {
    fn from(diagnosis: &'a Diagnosis) -> Self {
        Self { ok: diagnosis.is_ok(), findings: diagnosis.findings.iter().map(FindingJson::from).collect() }
    }
}

impl<'a> From<&'a Finding> for FindingJson<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            check: finding.check,
            level: finding.level.name(),
            said: &finding.said,
            advice: finding.advice.as_deref(),
        }
    }
}
