//! The trace that a job belongs to, in the form of W3C Trace Context and Baggage.
//!
//! A program passes its trace on in the variables `TRACEPARENT`, `TRACESTATE` and `BAGGAGE`, or in headers of the same
//! names. The ids of our own spans are computed from what identifies a job or an attempt, so nothing has to be stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The variables, in the order parent, state, baggage.
pub const VARIABLES: [&str; 3] = ["TRACEPARENT", "TRACESTATE", "BAGGAGE"];

/// The specifications ask for at least this much to be passed on; more is dropped.
const MAX_STATE_BYTES: usize = 512;
const MAX_BAGGAGE_BYTES: usize = 8_192;

const SAMPLED: u8 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub parent: TraceParent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baggage: Option<String>,
}

impl TraceContext {
    /// From what a caller passes on under each name. `None` without a valid parent: the trace begins anew then.
    pub fn read<'a>(value_of: impl Fn(&'static str) -> Option<&'a str>) -> Option<Self> {
        let [parent, state, baggage] = VARIABLES;
        let parent = value_of(parent)?.parse().ok()?;
        let kept = |name, max: usize| {
            let is_kept = |value: &&str| {
                !value.is_empty()
                    && value.len() <= max
                    && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            };
            value_of(name).filter(is_kept).map(str::to_owned)
        };
        Some(Self { parent, state: kept(state, MAX_STATE_BYTES), baggage: kept(baggage, MAX_BAGGAGE_BYTES) })
    }

    /// A trace of its own, for a job whose caller has none.
    pub fn new(parts: &[&[u8]]) -> Self {
        let (high, low) = (hash(&[b"trace-high"], parts), hash(&[b"trace-low"], parts));
        let trace = u128::from(high) << 64 | u128::from(low);
        let parent = TraceParent { trace, span: hash(&[b"caller"], parts), flags: SAMPLED };
        Self { parent, state: None, baggage: None }
    }

    /// The same trace below one of our spans.
    #[must_use]
    pub fn below(&self, parent: TraceParent) -> Self {
        Self { parent, ..self.clone() }
    }

    /// The variables of a command that continues the trace.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [Some(self.parent.to_string()), self.state.clone(), self.baggage.clone()];
        VARIABLES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
    }
}

/// A span, and whether its trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent {
    /// Neither is 0.
    pub trace: u128,
    pub span: u64,
    pub flags: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no trace parent: 00-TRACE-SPAN-FLAGS")]
pub struct TraceParentError;

impl TraceParent {
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The span below this one that these parts identify.
    #[must_use]
    pub fn child(self, parts: &[&[u8]]) -> Self {
        Self { span: hash(&[&self.trace.to_be_bytes(), &self.span.to_be_bytes()], parts), ..self }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    /// A later version may have more fields after these.
    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        let fields: Vec<&str> = text.split('-').collect();
        let [version, trace, span, flags, ref more @ ..] = fields[..] else {
            return Err(TraceParentError);
        };
        let number = |text: &str, digits: usize| {
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let is_valid = text.len() == digits && text.bytes().all(is_hex);
            is_valid.then(|| u128::from_str_radix(text, 16).ok()).flatten().ok_or(TraceParentError)
        };
        let version = number(version, 2)?;
        if version == 0xff || version == 0 && !more.is_empty() {
            return Err(TraceParentError);
        }
        let parsed = Self {
            trace: number(trace, 32)?,
            span: u64::try_from(number(span, 16)?).map_err(|_| TraceParentError)?,
            flags: u8::try_from(number(flags, 2)?).map_err(|_| TraceParentError)?,
        };
        if parsed.trace == 0 || parsed.span == 0 { Err(TraceParentError) } else { Ok(parsed) }
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = TraceParentError;

    fn try_from(text: String) -> Result<Self, TraceParentError> {
        text.parse()
    }
}

/// FNV-1a over the parts and their lengths, mixed by the finalizer of MurmurHash3; never 0.
fn hash(first: &[&[u8]], more: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in first.iter().chain(more) {
        for byte in (part.len() as u64).to_be_bytes().iter().chain(*part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash ^ (hash >> 33)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(parent: &str, state: Option<&str>) -> Option<TraceContext> {
        TraceContext::read(|name| match name {
            "TRACEPARENT" => Some(parent),
            "TRACESTATE" => state,
            "BAGGAGE" => None,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn a_parent_survives_as_text_and_a_malformed_one_is_no_trace() {
        assert_eq!(PARENT.parse::<TraceParent>().expect("valid").to_string(), PARENT);
        assert!("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x".parse::<TraceParent>().is_ok());
        for text in [
            "",
            "00-7-7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(TraceParentError), "{text}");
            assert_eq!(read(text, Some("a=b")), None);
        }
    }

    #[test]
    fn hostile_and_long_companions_are_dropped() {
        assert_eq!(read(PARENT, Some("a=b")).expect("a trace").state.as_deref(), Some("a=b"));
        for state in ["", "a\nb", "a\0b", "é", &"x".repeat(513)] {
            assert_eq!(read(PARENT, Some(state)).expect("a trace").state, None, "{state:?}");
        }
    }

    #[test]
    fn spans_differ_by_what_identifies_them_and_stay_in_the_trace() {
        let parent: TraceParent = PARENT.parse().expect("valid");
        let child = |parts: &[&[u8]]| parent.child(parts);
        assert_eq!(child(&[b"a", b"1"]), child(&[b"a", b"1"]));
        assert_ne!(child(&[b"a", b"1"]).span, child(&[b"a1"]).span);
        assert_eq!(child(&[b"a"]).trace, parent.trace);
        assert_ne!(TraceContext::new(&[b"a"]).parent, TraceContext::new(&[b"b"]).parent);
    }

    #[test]
    fn a_command_gets_the_variables_that_are_known() {
        let names: Vec<&str> =
            read(PARENT, None).expect("a trace").variables().map(|(name, _)| name).collect();
        assert_eq!(names, ["TRACEPARENT"]);
    }
}
