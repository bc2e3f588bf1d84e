//! Buttons that call the API. The script asks first, shows the command that does the same, and then sends the request.

use maud::{Markup, html};

/// A change that a button makes.
#[derive(Default)]
pub(crate) struct Act<'a> {
    pub(crate) label: &'a str,
    pub(crate) method: &'a str,
    /// The path of the API with the base path.
    pub(crate) path: String,
    /// The body, as JSON; empty for none.
    pub(crate) body: String,
    /// The question before it; empty if it asks nothing.
    pub(crate) ask: String,
    pub(crate) cli: String,
    /// Where to go afterwards; empty to stay.
    pub(crate) then: String,
    /// What has to be typed first; empty for nothing.
    pub(crate) type_in: String,
    /// The key that presses it; empty for none.
    pub(crate) key: &'a str,
    pub(crate) is_final: bool,
}

impl Act<'_> {
    pub(crate) fn markup(&self) -> Markup {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        html! {
            button .danger[self.is_final] type="button" data-act=(self.method) data-path=(self.path)
                data-body=[given(&self.body)] data-ask=[given(&self.ask)] data-cli=[given(&self.cli)]
                data-then=[given(&self.then)] data-type=[given(&self.type_in)] data-key=[given(self.key)] { (self.label) }
        }
    }
}
