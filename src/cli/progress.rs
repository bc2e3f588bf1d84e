//! A progress bar for what takes long, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::context::Context;

/// A bar that counts to `total`, or only counts where that is unknown.
pub(super) fn bar(context: &Context, what: &'static str, total: Option<u64>) -> ProgressBar {
    if !context.person_watches() {
        return ProgressBar::hidden();
    }
    let template = match total {
        Some(_) => "{msg} {wide_bar:.cyan} {human_pos}/{human_len} {per_sec}, {eta} left",
        None => "{msg} {human_pos} {per_sec} {spinner}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_style(style).with_message(what)
}
