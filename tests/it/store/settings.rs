//! The settings in the store.

use std::collections::BTreeMap;

use domain::settings::{SettingError, SettingKey, Settings};
use store::WriteError;

use super::fixture::{ACTOR, Fixture, every_store};

every_store!(
    a_new_store_has_no_settings,
    a_setting_is_stored_until_it_is_unset,
    every_default_can_be_set_and_unset,
    a_wrong_value_is_refused_and_changes_nothing,
    lease_and_heartbeat_are_checked_together,
    unsetting_a_value_is_checked_too,
);

fn stored(fixture: &Fixture) -> BTreeMap<SettingKey, String> {
    fixture.store.settings().expect("settings")
}

fn try_set(fixture: &Fixture, key: SettingKey, value: Option<&str>) -> Result<(), SettingError> {
    match fixture.store.set(key, value, ACTOR) {
        Err(WriteError::Store(error)) => panic!("failed to set {key}: {error}"),
        Err(WriteError::Refused(refusal)) => Err(refusal),
        Ok(()) => Ok(()),
    }
}

fn a_new_store_has_no_settings(fixture: &Fixture) {
    assert_eq!(stored(fixture), BTreeMap::new());
}

fn a_setting_is_stored_until_it_is_unset(fixture: &Fixture) {
    for (key, value, read_back) in [
        (SettingKey::MaxRetries, "0", "0"),
        (SettingKey::MaxRetries, "7", "7"),
        (SettingKey::RetryDelay, "90", "1m30s"),
        (SettingKey::BackoffBase, "1.50", "1.5"),
        (SettingKey::BackoffStrategy, "linear", "linear"),
        (SettingKey::JobTimeout, "none", "none"),
        (SettingKey::JobTimeout, "PT2H", "2h"),
        (SettingKey::LogMaxBytes, "2048K", "2M"),
        (SettingKey::RetainDead, "7d", "7d"),
    ] {
        assert_eq!(try_set(fixture, key, Some(value)), Ok(()), "{key} = {value}");
        assert_eq!(
            stored(fixture).get(&key).map(String::as_str),
            Some(read_back),
            "{key} = {value}, in canonical form"
        );
    }
    let before = stored(fixture);
    assert_eq!(try_set(fixture, SettingKey::MaxRetries, None), Ok(()));
    let mut expected = before;
    expected.remove(&SettingKey::MaxRetries);
    assert_eq!(stored(fixture), expected, "the other settings are kept");
}

fn every_default_can_be_set_and_unset(fixture: &Fixture) {
    let defaults = Settings::default();
    for key in SettingKey::ALL {
        let value = defaults.get(key);
        assert_eq!(try_set(fixture, key, Some(&value)), Ok(()), "{key} = {value}");
        assert_eq!(stored(fixture)[&key], value);
        assert_eq!(try_set(fixture, key, None), Ok(()), "{key}");
        assert_eq!(try_set(fixture, key, None), Ok(()), "{key} is unset already");
    }
    assert_eq!(stored(fixture), BTreeMap::new());
}

fn a_wrong_value_is_refused_and_changes_nothing(fixture: &Fixture) {
    fixture.set(SettingKey::MaxRetries, "5");
    let before = stored(fixture);
    for (key, value) in [
        (SettingKey::MaxRetries, "-1"),
        (SettingKey::MaxRetries, "many"),
        (SettingKey::MaxRetries, ""),
        (SettingKey::BackoffStrategy, "quadratic"),
        (SettingKey::BackoffBase, "0.5"),
        (SettingKey::BackoffJitter, "2"),
        (SettingKey::JobTimeout, "0"),
        (SettingKey::Concurrency, "0"),
        (SettingKey::CrashLimit, "0"),
        (SettingKey::Durability, "none"),
        (SettingKey::Limits, "memory=lots"),
    ] {
        assert!(try_set(fixture, key, Some(value)).is_err(), "{key} = {value} is refused");
        assert_eq!(stored(fixture), before, "{key} = {value} changes nothing");
    }
}

fn lease_and_heartbeat_are_checked_together(fixture: &Fixture) {
    use SettingKey::{HeartbeatInterval, Lease};
    let steps = [
        (HeartbeatInterval, "5s", true),
        (Lease, "14s", false),
        (Lease, "15s", true),
        (HeartbeatInterval, "6s", false),
        (HeartbeatInterval, "1s", true),
        (Lease, "3s", true),
        (Lease, "2999ms", false),
        (HeartbeatInterval, "1001ms", false),
    ];
    for (key, value, accepted) in steps {
        let before = stored(fixture);
        let set = try_set(fixture, key, Some(value));
        assert_eq!(set.is_ok(), accepted, "{key} = {value}: {set:?}");
        if !accepted {
            assert_eq!(stored(fixture), before, "{key} = {value} changes nothing");
        }
    }
}

fn unsetting_a_value_is_checked_too(fixture: &Fixture) {
    fixture.set(SettingKey::Lease, "90s");
    fixture.set(SettingKey::HeartbeatInterval, "30s");
    let before = stored(fixture);
    let unset = try_set(fixture, SettingKey::Lease, None);
    assert!(
        matches!(unset, Err(SettingError::LeaseTooShort { .. })),
        "the default lease is too short for that heartbeat: {unset:?}"
    );
    assert_eq!(stored(fixture), before);
}
