//! The keys of all pages, for the script that shows them.

use maud::{Markup, html};

/// The keys of one page, and what they do.
type Group = (&'static str, &'static [(&'static [&'static str], &'static str)]);

const GROUPS: &[Group] = &[
    (
        "Everywhere",
        &[
            (&["Ctrl-K"], "go to a page, a job or a queue, or do something"),
            (&["?"], "these keys"),
            (&["j", "k"], "next and previous row"),
            (&["Enter"], "open the row"),
            (&["/"], "filter, or find in the output"),
            (&["Esc"], "close, or leave a field"),
            (&["g", "o"], "Overview"),
            (&["g", "j"], "Jobs"),
            (&["g", "d"], "Dead"),
            (&["g", "q"], "Queues"),
            (&["g", "w"], "Workers"),
            (&["g", "s"], "Schedules"),
            (&["g", "b"], "Batches"),
            (&["g", "h"], "Hooks"),
            (&["g", "e"], "Events"),
            (&["g", "c"], "Settings"),
            (&["g", "n"], "enqueue a job"),
        ],
    ),
    (
        "Jobs",
        &[
            (&["x"], "choose the row"),
            (&["X"], "choose all rows from the last chosen one"),
            (&["*"], "choose all jobs that match"),
            (&["r"], "retry the chosen jobs, or that of the row"),
            (&["c"], "cancel them"),
            (&["e"], "edit them"),
            (&["Del"], "remove them"),
            (&["u"], "choose none"),
        ],
    ),
    (
        "A job",
        &[
            (&["r"], "retry"),
            (&["e"], "edit or clone"),
            (&["[", "]"], "previous and next attempt"),
            (&["f"], "follow the output"),
            (&["n", "N"], "next and previous match"),
            (&["t"], "time of each line"),
            (&["w"], "wrap long lines"),
            (&["d"], "diff with the attempt before"),
            (&["G"], "graph of the dependencies"),
        ],
    ),
];

pub(super) fn list() -> Markup {
    html! {
        template #keys {
            div .keys {
                @for (title, keys) in GROUPS {
                    section {
                        h3 { (title) }
                        dl { @for (names, about) in *keys { dt { @for name in *names { kbd { (name) } " " } } dd { (about) } } }
                    }
                }
            }
        }
    }
}
