//! The tabs, in the order of their numbers.

domain::named_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Tab {
        #[default]
        Overview = "Overview",
        Jobs = "Jobs",
        Dead = "Dead",
        Queues = "Queues",
        Workers = "Workers",
        Schedules = "Sched",
        Batches = "Batches",
        Events = "Events",
    }
}

impl Tab {
    pub(crate) fn index(self) -> usize {
        Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }

    /// The tab after this one, or before it.
    pub(crate) fn step(self, by: usize) -> Self {
        Self::ALL[(self.index() + by) % Self::ALL.len()]
    }
}
