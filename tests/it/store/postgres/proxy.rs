//! The proxy of the trials, in front of the server of a test.

pub(crate) use proof::sandbox::proxy::{Fault, Proxy};
use store::postgres::Address;

/// The connection ends instead of passing on a commit.
pub(crate) const CUT_BEFORE_COMMIT: Fault = Fault::CutCommit { bytes: 0 };

/// A proxy for the server of this address, which must not demand encryption.
pub(crate) fn proxy_to(server: &Address) -> Proxy {
    Proxy::to(server).expect("a free port").expect("a server without encryption")
}
