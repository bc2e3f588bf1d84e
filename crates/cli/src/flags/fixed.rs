//! Flags that `edit` accepts only to explain why it refuses them.

use domain::job::edit::{EditError, fixed_field};

/// Fields of a job that cannot be changed.
#[derive(Debug, clap::Args)]
pub(crate) struct FixedFlags {
    #[arg(id = "new-id", long = "id", hide = true)]
    id: Option<String>,
    #[arg(long, hide = true)]
    depends_on: Option<String>,
    #[arg(long, hide = true)]
    unique_key: Option<String>,
    #[arg(long, hide = true)]
    unique_for: Option<String>,
}

impl FixedFlags {
    pub(crate) fn refuse(&self) -> Result<(), EditError> {
        let fixed = [
            ("id", &self.id),
            ("depends_on", &self.depends_on),
            ("unique_key", &self.unique_key),
            ("unique_for", &self.unique_for),
        ];
        match fixed.into_iter().find(|(_, typed)| typed.is_some()) {
            Some((field, _)) => Err(fixed_field(field)),
            None => Ok(()),
        }
    }
}
