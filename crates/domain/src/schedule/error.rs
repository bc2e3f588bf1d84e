//! Why a schedule is refused.

use super::policy::{OnOverlap, Policy, PolicyError};
use super::when::WhenError;
use crate::job::spec::JobSpec;
use crate::text::nearest::nearest;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error(transparent)]
    When(#[from] WhenError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("unknown time zone `{name}`")]
    UnknownZone { name: String, nearest: Option<String> },
    #[error("`{0}` is an abbreviation; zones have names such as {example}", example = example_of(.0))]
    ZoneAbbreviation(String),
    #[error("the job of a schedule cannot have `{field}`: {why}")]
    Field { field: &'static str, why: &'static str },
}

/// The error for an unknown zone. It suggests a zone whose city was typed, or one with a similar name.
pub fn unknown_zone(typed: &str, known: &[String]) -> ScheduleError {
    let typed_lower = typed.to_ascii_lowercase();
    let lower: Vec<String> = known.iter().map(|name| name.to_ascii_lowercase()).collect();
    let is_city = |name: &String| name.rsplit('/').next() == Some(typed_lower.as_str());
    let city = lower.iter().position(is_city);
    if city.is_none() && is_abbreviation(typed) {
        return ScheduleError::ZoneAbbreviation(typed.to_owned());
    }
    let at = city.or_else(|| {
        let nearest = nearest(&typed_lower, lower.iter().map(String::as_str))?;
        lower.iter().position(|name| name == nearest)
    });
    ScheduleError::UnknownZone { name: typed.to_owned(), nearest: at.map(|at| known[at].clone()) }
}

/// `PST`, `CEST`: two to five capital letters, several of which mean different offsets in different countries.
fn is_abbreviation(typed: &str) -> bool {
    (2..=5).contains(&typed.len()) && typed.bytes().all(|byte| byte.is_ascii_uppercase())
        || ABBREVIATIONS.iter().any(|(name, _)| name.eq_ignore_ascii_case(typed))
}

/// Common abbreviations, each with a zone in which it is used.
const ABBREVIATIONS: [(&str, &str); 20] = [
    ("PST", "America/Los_Angeles"),
    ("PDT", "America/Los_Angeles"),
    ("PT", "America/Los_Angeles"),
    ("MDT", "America/Denver"),
    ("MT", "America/Denver"),
    ("CST", "America/Chicago"),
    ("CDT", "America/Chicago"),
    ("CT", "America/Chicago"),
    ("EDT", "America/New_York"),
    ("ET", "America/New_York"),
    ("BST", "Europe/London"),
    ("IST", "Asia/Kolkata"),
    ("CEST", "Europe/Berlin"),
    ("EEST", "Europe/Athens"),
    ("MSK", "Europe/Moscow"),
    ("JST", "Asia/Tokyo"),
    ("KST", "Asia/Seoul"),
    ("AEST", "Australia/Sydney"),
    ("AEDT", "Australia/Sydney"),
    ("NZST", "Pacific/Auckland"),
];

fn example_of(abbreviation: &str) -> &'static str {
    let known = ABBREVIATIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(abbreviation));
    known.map_or("Europe/Berlin", |(_, zone)| *zone)
}

/// Refuses fields that make no sense for a recurring job.
pub fn check_job(job: &JobSpec, policy: Policy) -> Result<(), ScheduleError> {
    let refuse = |field, why| Err(ScheduleError::Field { field, why });
    if job.id.is_some() {
        return refuse("id", "each run gets its own id from the schedule's name and the time");
    }
    if job.run_at.is_some() {
        return refuse("run_at", "the schedule sets the time; use --at for a single run");
    }
    if job.delay.is_some() {
        return refuse("delay", "the schedule sets the time");
    }
    if !job.depends_on.is_empty() {
        return refuse(
            "depends_on",
            "every run would depend on the same job, which is finished after the first run",
        );
    }
    if job.on_dependency_failure.is_some() {
        return refuse("on_dependency_failure", "the job has no dependencies");
    }
    if job.unique_key.is_some() && policy.on_overlap != OnOverlap::Skip {
        return refuse(
            "unique_key",
            "an unfinished run with the key prevents another, so --on-overlap must be skip",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_zone_suggests_the_nearest() {
        let known = ["Europe/Berlin", "Europe/Dublin", "America/New_York"].map(str::to_owned);
        for (typed, expected) in [
            ("Europe/Berln", Some("Europe/Berlin")),
            ("berlin", Some("Europe/Berlin")),
            ("America/New-York", Some("America/New_York")),
            ("Mars/Phobos", None),
        ] {
            let nearest = expected.map(str::to_owned);
            assert_eq!(
                unknown_zone(typed, &known),
                ScheduleError::UnknownZone { name: typed.to_owned(), nearest },
                "{typed}"
            );
        }
    }

    #[test]
    fn an_abbreviation_gets_no_guess() {
        let known = ["EST", "Europe/Berlin", "America/Los_Angeles"].map(str::to_owned);
        for (typed, example) in [
            ("PST", "America/Los_Angeles"),
            ("pst", "America/Los_Angeles"),
            ("IST", "Asia/Kolkata"),
            ("CEST", "Europe/Berlin"),
            ("XYZ", "Europe/Berlin"),
        ] {
            let expected = format!("`{typed}` is an abbreviation; zones have names such as {example}");
            assert_eq!(unknown_zone(typed, &known).to_string(), expected);
        }
    }

    #[test]
    fn fields_that_make_no_sense_for_a_recurring_job_are_refused() {
        let skip = Policy::new(None, None, None).expect("valid defaults");
        let queue = Policy { on_overlap: OnOverlap::Queue, ..skip };
        for (json, policy, field) in [
            (r#"{"command":"x","id":"a"}"#, skip, Some("id")),
            (r#"{"command":"x","run_at":"2026-01-31T09:30:00Z"}"#, skip, Some("run_at")),
            (r#"{"command":"x","delay":5}"#, skip, Some("delay")),
            (r#"{"command":"x","depends_on":["a"]}"#, skip, Some("depends_on")),
            (r#"{"command":"x","on_dependency_failure":"run"}"#, skip, Some("on_dependency_failure")),
            (r#"{"command":"x","unique_key":"k"}"#, queue, Some("unique_key")),
            (r#"{"command":"x","unique_key":"k"}"#, skip, None),
            (r#"{"command":"x","queue":"q","priority":3,"tags":["t"],"timeout":5}"#, queue, None),
        ] {
            let job: JobSpec = serde_json::from_str(json).expect(json);
            let refused = check_job(&job, policy).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), field.is_some(), "{json}");
            assert!(refused.unwrap_or_default().contains(field.unwrap_or_default()), "{json}");
        }
    }
}
