//! A schema for a short time, such as that of a benchmark: it has a name of its own, and no other can be deleted here.

use super::address::Address;
use super::store::PostgresStore;
use crate::error::StoreError;

/// How the names of these schemas begin.
const PREFIX: &str = "queuectl_scratch_";

/// The same database with a schema of a name that no other process uses.
pub fn scratch(address: &Address) -> Address {
    let mut scratch = address.clone();
    scratch.schema = format!("{PREFIX}{}_{:08x}", std::process::id(), fastrand::u32(..));
    scratch
}

/// Deletes such a schema with everything in it. Does nothing with a schema of another name.
pub fn drop_scratch(address: &Address) -> Result<(), StoreError> {
    if !address.schema.starts_with(PREFIX) {
        return Ok(());
    }
    PostgresStore::destroy(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_schema_has_a_name_of_its_own() {
        let address = Address::parse("postgres://ada@db/jobs?schema=queuectl").expect("an address");
        let (one, other) = (scratch(&address), scratch(&address));
        assert!(one.schema.starts_with(PREFIX) && one.schema != other.schema);
        assert_eq!((one.database, one.user), (address.database.clone(), address.user.clone()));
        // No server is asked: there is none.
        assert!(drop_scratch(&address).is_ok(), "the schema of a queue is left alone");
    }
}
