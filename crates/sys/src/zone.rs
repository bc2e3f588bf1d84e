//! Time zones by their IANA names, from this machine's database or else from the one in the program.

use std::fs;

use jiff::tz::{TimeZone, db};

/// The zone with this name, in any case.
pub fn find(name: &str) -> Option<TimeZone> {
    // Names such as `posixrules` and fixed offsets are not time zones that people use.
    db().get(name).ok().filter(|zone| zone.iana_name().is_some())
}

/// The names of all zones.
pub fn names() -> Vec<String> {
    db().available().map(|name| name.as_str().to_owned()).collect()
}

/// The time zone of this machine, if it is configured.
pub fn of_machine() -> Option<TimeZone> {
    let system = TimeZone::try_system().ok().filter(|zone| zone.iana_name().is_some());
    system.or_else(|| find(fs::read_to_string("/etc/timezone").ok()?.trim()))
}

/// The time zone of this process: that of `TZ`, else of this machine, else UTC.
pub fn local() -> TimeZone {
    let known = |zone: &TimeZone| !zone.is_unknown();
    TimeZone::try_system().ok().filter(known).or_else(of_machine).unwrap_or(TimeZone::UTC)
}

/// The value of `TZ` if no such zone is known.
pub fn unknown_name_in_environment() -> Option<String> {
    let name = std::env::var("TZ").ok().filter(|name| !name.is_empty())?;
    let is_known = TimeZone::try_system().is_ok_and(|zone| !zone.is_unknown());
    (!is_known).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_name_in_any_case() {
        let berlin = find("europe/berlin").expect("a zone");
        assert_eq!(berlin.iana_name(), Some("Europe/Berlin"));
        assert_eq!(find("Europe/Berlinn"), None);
        assert_eq!(find("../../etc/passwd"), None);
        assert!(names().iter().any(|name| name == "Australia/Lord_Howe"));
    }
}
