//! Hooks: adding, finding and removing them, and sample deliveries.

mod sample;

pub use sample::sample;

use super::OpError;
use super::error::Named;
use domain::values::name::HookName;
use store::{Hook, HookDeliveries, NewHook, Store};

pub fn parse_name(typed: &str) -> Result<HookName, OpError> {
    typed.parse().map_err(|source| OpError::BadName { what: "name", typed: typed.to_owned(), source })
}

/// Adds a hook and returns it as stored.
pub fn add(store: &dyn Store, hook: &NewHook, by: &str) -> Result<Hook, OpError> {
    if !store.add_hook(hook, by)? {
        return Err(OpError::HookTaken(hook.name.clone()));
    }
    find(store, &hook.name)
}

pub fn find(store: &dyn Store, name: &HookName) -> Result<Hook, OpError> {
    let mut hooks = store.hooks()?;
    match hooks.iter().position(|hook| hook.name == *name) {
        Some(at) => Ok(hooks.swap_remove(at)),
        None => Err(no_such(name, &hooks)),
    }
}

/// The deliveries of a hook that are waiting, up to `limit`, and its last results.
pub fn deliveries(store: &dyn Store, name: &HookName, limit: usize) -> Result<HookDeliveries, OpError> {
    match store.deliveries(name, limit)? {
        Some(deliveries) => Ok(deliveries),
        None => Err(no_such(name, &store.hooks()?)),
    }
}

/// Removes a hook and returns its last version.
pub fn remove(store: &dyn Store, name: &HookName, by: &str) -> Result<Hook, OpError> {
    let hook = find(store, name)?;
    if !store.remove_hook(name, by)? {
        return Err(no_such(name, &[]));
    }
    Ok(hook)
}

fn no_such(name: &HookName, hooks: &[Hook]) -> OpError {
    OpError::no_such(Named::Hook, name.as_str(), hooks.iter().map(|hook| hook.name.as_str()))
}
