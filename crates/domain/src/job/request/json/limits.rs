//! Parses [`Limits`] from JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{GivenFields, check, whole};
use crate::job::limits::{
    Cpu, FIELDS, Limits, MAX_NICE, MAX_OPEN_FILES, MAX_PIDS, MIN_NICE, MIN_OPEN_FILES, check_memory,
};
use crate::values::size::parse_size;

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LimitsVisitor)
    }
}

struct LimitsVisitor;

impl<'de> Visitor<'de> for LimitsVisitor {
    type Value = Limits;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object such as {\"memory\":\"512M\",\"pids\":100}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Limits, M::Error> {
        let mut limits = Limits::default();
        let mut given = GivenFields::new(&FIELDS);
        while let Some(name) = map.next_key::<String>()? {
            let field = given.add(&name)?;
            read_field(&mut limits, field, &mut map)
                .map_err(|error| M::Error::custom(format_args!("`{field}`: {error}")))?;
        }
        Ok(limits)
    }
}

fn read_field<'de, M: MapAccess<'de>>(
    limits: &mut Limits,
    field: &'static str,
    map: &mut M,
) -> Result<(), M::Error> {
    match field {
        "memory" => limits.memory = Some(check(check_memory(map.next_value::<Size>()?.0))?),
        "cpu" => limits.cpu = Some(check(Cpu::new(map.next_value()?))?),
        "pids" => limits.pids = Some(whole::<1, MAX_PIDS, _, _>(map)?),
        "nice" => limits.nice = Some(whole::<MIN_NICE, MAX_NICE, _, _>(map)?),
        _ => limits.open_files = Some(whole::<MIN_OPEN_FILES, MAX_OPEN_FILES, _, _>(map)?),
    }
    Ok(())
}

/// A number of bytes, or text such as `512M`.
struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = Size;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a size such as \"512M\" or a number of bytes")
            }

            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<Size, E> {
                // As text, it goes through the same checks.
                self.visit_str(&bytes.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
                check(parse_size(text)).map(Size)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}
