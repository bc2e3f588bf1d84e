//! Hook deliveries: from the outbox of the store to a command or a webhook, and back.

pub(crate) mod deliver;
pub(crate) mod delivery_pool;
pub(crate) mod hook_test;
pub(crate) mod outbox;
pub(crate) mod process;
pub(crate) mod webhook;
