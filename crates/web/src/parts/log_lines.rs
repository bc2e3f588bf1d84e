//! Lines of output with their numbers.

use maud::{Markup, html};

use super::number::bytes;
use super::sgr::{self, Look};
use super::time;
use crate::pages::visit::Visit;
use domain::log::Stream;
use domain::values::timestamp::Timestamp;

/// A line, or a place where output was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogRow {
    Line { number: u64, at: Timestamp, stream: Stream, bytes: Vec<u8> },
    Cut { bytes: u64 },
}

/// The rows of an attempt; `url` is the page without a fragment, which links to lines extend.
pub(crate) fn rows(visit: &Visit<'_>, rows: &[LogRow], url: &str) -> Markup {
    let (mut out, mut err) = (Look::default(), Look::default());
    html! {
        ol .log tabindex="0" aria-label="Output" {
            @for row in rows {
                @match row {
                    LogRow::Line { number, at, stream, bytes } => {
                        li .err[*stream == Stream::Err] id={ "L" (number) } {
                            a .n href={ (url) "line=" (number) "#L" (number) } aria-label={ "Line " (number) } { (number) }
                            span .t { (time::clock(visit.now, *at)) }
                            @let look = match stream { Stream::Out => &mut out, Stream::Err => &mut err };
                            code { (sgr::line(bytes, look)) }
                        }
                    },
                    LogRow::Cut { bytes: cut } => li .gap { (bytes(*cut)) " were not kept here" },
                }
            }
        }
    }
}
