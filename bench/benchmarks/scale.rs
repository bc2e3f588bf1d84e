//! A queue in PostgreSQL beyond the size of this machine: what many workers cost the server, ten million jobs, and a
//! steady load over many minutes. `docs/scale.md` projects the figures to larger servers.

mod costs;
pub(crate) mod fleet;
mod logical;
pub(crate) mod steady;
mod tables;
pub(crate) mod ten_million;
