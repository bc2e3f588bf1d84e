//! Migrations that a test adds to those of this program.
//!
//! Tests need a program that knows more versions than this one. In debug builds `QUEUECTL_MIGRATIONS=FILE[:FILE...]` adds
//! the statements in these files to the list.

#[cfg(not(debug_assertions))]
pub(crate) fn added_migrations() -> &'static [String] {
    &[]
}

#[cfg(debug_assertions)]
pub(crate) fn added_migrations() -> &'static [String] {
    static ADDED: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    let read = |path| std::fs::read_to_string(path).expect("a test adds migrations that exist");
    ADDED.get_or_init(|| {
        std::env::var_os("QUEUECTL_MIGRATIONS")
            .map_or_else(Vec::new, |paths| std::env::split_paths(&paths).map(read).collect())
    })
}
