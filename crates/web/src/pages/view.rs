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
    /// The ids of sections that only a load of the page shows: their scripts keep them current.
    still: Vec<&'static str>,
    /// Scripts beside those of every page.
    pub(crate) scripts: Vec<&'static str>,
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
        Self { title: title.into(), place, sections: Vec::new(), still: Vec::new(), scripts: Vec::new() }
    }

    pub(crate) fn with(mut self, id: &'static str, label: &'static str, content: Markup) -> Self {
        self.sections.push(Section { id, label, content });
        self
    }

    /// A section that the stream does not send.
    pub(crate) fn with_still(mut self, id: &'static str, label: &'static str, content: Markup) -> Self {
        self.still.push(id);
        self.with(id, label, content)
    }

    pub(crate) fn with_script(mut self, name: &'static str) -> Self {
        self.scripts.push(name);
        self
    }

    /// The sections that change as HTML, by id.
    pub(crate) fn fragments(&self) -> BTreeMap<String, String> {
        let fragment = |section: &Section| (section.id.to_owned(), section.markup().into_string());
        self.sections.iter().filter(|section| !self.still.contains(&section.id)).map(fragment).collect()
    }
}

impl Section {
    pub(crate) fn markup(&self) -> Markup {
        html! { section id=(self.id) aria-label=(self.label) { (self.content) } }
    }
}
