//! The text format of Prometheus: families of samples with their labels.

use std::fmt::{Display, Write};
use std::time::Duration;

use domain::metrics::histogram::{Bounds, Histogram};

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// The label of a sample: its name and its value.
pub type Label<'a> = (&'static str, &'a str);

/// Collects families. One without any sample is left out.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// The samples of one family.
#[derive(Debug)]
pub struct Samples<'a> {
    name: &'static str,
    text: &'a mut String,
}

impl Exposition {
    pub fn family(&mut self, kind: Kind, name: &'static str, help: &str, add: impl FnOnce(&mut Samples<'_>)) {
        let mut text = String::new();
        add(&mut Samples { name, text: &mut text });
        if !text.is_empty() {
            let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {}\n{text}", kind.name());
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

impl Samples<'_> {
    pub fn add(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.line("", labels, value);
    }

    pub fn histogram(&mut self, label: Label<'_>, histogram: &Histogram, bounds: &Bounds) {
        let mut count = 0;
        let upper = bounds.iter().map(|bound| seconds(*bound)).chain(["+Inf".to_owned()]);
        for (bucket, upper) in histogram.buckets.iter().zip(upper) {
            count += bucket;
            self.line("_bucket", &[label, ("le", &upper)], count);
        }
        self.line("_sum", &[label], seconds(Duration::from_millis(histogram.sum_ms)));
        self.line("_count", &[label], count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"{}\"", if at == 0 { "{" } else { "," }, escaped(value));
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// A duration in seconds.
pub fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

/// The value of a label between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::metrics::histogram::WAIT_BOUNDS;

    #[test]
    fn label_values_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.family(Kind::Gauge, "jobs", "Jobs.", |samples| {
            samples.add(&[("queue", "a\"b\\c\nd"), ("state", "dead")], 3);
        });
        exposition.family(Kind::Gauge, "empty", "Nothing.", |_| ());
        exposition.family(Kind::Counter, "all_total", "All.", |samples| samples.add(&[], 1.5));
        let expected = "# HELP jobs Jobs.\n# TYPE jobs gauge\njobs{queue=\"a\\\"b\\\\c\\nd\",state=\"dead\"} 3\n\
                        # HELP all_total All.\n# TYPE all_total counter\nall_total 1.5\n";
        assert_eq!(exposition.into_text(), expected);
    }

    #[test]
    fn the_buckets_of_a_histogram_are_cumulative() {
        let mut histogram = Histogram::default();
        for millis in [3, 4, 30, 9_000_000] {
            histogram.record(Duration::from_millis(millis), &WAIT_BOUNDS);
        }
        let mut exposition = Exposition::default();
        exposition.family(Kind::Histogram, "wait", "Wait.", |samples| {
            samples.histogram(("queue", "q"), &histogram, &WAIT_BOUNDS);
        });
        let text = exposition.into_text();
        let counts: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("wait_bucket"))
            .map(|line| line.split_once("le=").expect("a bound").1)
            .collect();
        assert_eq!(counts.len(), 16);
        assert_eq!(counts[..4], ["\"0.005\"} 2", "\"0.01\"} 2", "\"0.025\"} 2", "\"0.05\"} 3"]);
        assert_eq!(counts[14..], ["\"1800\"} 3", "\"+Inf\"} 4"]);
        assert!(text.ends_with("wait_sum{queue=\"q\"} 9000.037\nwait_count{queue=\"q\"} 4\n"), "{text}");
    }
}
