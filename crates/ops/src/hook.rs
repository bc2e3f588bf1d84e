//! Hooks: adding, finding and removing them, and sample deliveries.

mod sample;

pub use sample::sample;

use super::OpError;
use super::error::Named;
use domain::values::name::HookName;
use store::{DeliveryRetry, Hook, HookDeliveries, NewHook, Notice, Store};

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

/// Lets the workers try one waiting delivery of a hook now, or all that wait for their next try. Returns how many.
pub fn retry(store: &dyn Store, name: &HookName, delivery: Option<&str>, by: &str) -> Result<u64, OpError> {
    let retried = match delivery {
        None => store.retry_deliveries(name, by)?,
        Some(delivery) => match store.retry_delivery(name, delivery, by)? {
            DeliveryRetry::Due => Some(1),
            DeliveryRetry::Sending => return Err(OpError::DeliveryInFlight(delivery.to_owned())),
            DeliveryRetry::NotWaiting => {
                return Err(OpError::NoSuchDelivery { hook: name.clone(), delivery: delivery.to_owned() });
            }
            DeliveryRetry::NoHook => None,
        },
    };
    let Some(retried) = retried else {
        return Err(no_such(name, &store.hooks()?));
    };
    if retried > 0 {
        store.announce(Notice::Orders)?;
    }
    Ok(retried)
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
