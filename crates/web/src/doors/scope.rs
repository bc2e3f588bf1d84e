//! What a token or a session permits.

domain::named_enum! {
    /// Each scope includes those before it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Scope {
        /// Only the numbers at `/metrics`.
        Metrics = "metrics",
        /// Everything that changes nothing.
        Read = "read",
        /// Changes that bring in no new command.
        Operate = "operate",
        /// Everything: a new command runs as the user of the workers.
        Admin = "admin",
    }
}
