//! What a page shows: sections, each with an id by which the stream replaces it.

use std::collections::BTreeMap;

use maud::{Markup, html};

/// The entries of the rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Overview,
    Jobs,
    Dead,
    Queues,
    Workers,
    Schedules,
    Batches,
    Hooks,
    Events,
    Settings,
    Enqueue,
}

pub(crate) struct View {
    pub(crate) title: String,
    pub(crate) place: Place,
    pub(crate) sections: Vec<Section>,
}

/// A part of a page that changes as a whole.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    /// What assistive technology calls it.
    pub(crate) label: &'static str,
    pub(crate) content: Markup,
}

impl View {
    pub(crate) fn new(title: impl Into<String>, place: Place) -> Self {
        Self { title: title.into(), place, sections: Vec::new() }
    }

    pub(crate) fn with(mut self, id: &'static str, label: &'static str, content: Markup) -> Self {
        self.sections.push(Section { id, label, content });
        self
    }

    /// The sections as HTML, by id.
    pub(crate) fn fragments(&self) -> BTreeMap<String, String> {
        let fragment = |section: &Section| (section.id.to_owned(), section.markup().into_string());
        self.sections.iter().map(fragment).collect()
    }
}

impl Section {
    pub(crate) fn markup(&self) -> Markup {
        html! { section id=(self.id) aria-label=(self.label) { (self.content) } }
    }
}
