//! Time zones, by the names of the IANA database: this machine's copy of it, else the one that comes with the program.

use std::fs;

use jiff::tz::{TimeZone, db};

/// The zone of this name, in whatever case it is typed.
pub fn find(name: &str) -> Option<TimeZone> {
    // Names such as `posixrules` and fixed offsets have no rules for a clock that people live by.
    db().get(name).ok().filter(|zone| zone.iana_name().is_some())
}

/// The names of all zones.
pub fn names() -> Vec<String> {
    db().available().map(|name| name.as_str().to_owned()).collect()
}

/// The zone that this machine keeps, if it says which.
pub fn of_machine() -> Option<TimeZone> {
    let system = TimeZone::try_system().ok().filter(|zone| zone.iana_name().is_some());
    system.or_else(|| find(fs::read_to_string("/etc/timezone").ok()?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_by_their_names() {
        let berlin = find("europe/berlin").expect("a zone");
        assert_eq!(berlin.iana_name(), Some("Europe/Berlin"));
        assert_eq!(find("Europe/Berlinn"), None);
        assert_eq!(find("../../etc/passwd"), None);
        assert!(names().iter().any(|name| name == "Australia/Lord_Howe"));
    }
}
