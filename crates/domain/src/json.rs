//! Reading values and objects from JSON that people write. A derived `Deserialize` reads the fields; this module adds
//! what it lacks: an error names its field, an unknown field gets the nearest known name, and a duplicate key or an array in
//! place of an object is refused.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::text::nearest::suggestion;

/// Implements serde for a struct that derives it with `remote = "Self"`, so that it is read through [`Object`].
macro_rules! read_as_object {
    ($type:ty, required: $required:expr) => {
        $crate::json::read_as_object!($type, required: $required, printed: |_| None);
    };
    ($type:ty, required: $required:expr, printed: $printed:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$type>::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$type>::deserialize($crate::json::Object {
                    deserializer,
                    required: $required,
                    printed: $printed,
                })
            }
        }
    };
}

/// Implements serde for types with a text form, which `read` takes from the JSON.
macro_rules! read_as_text {
    ($read:path: $($type:ty),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::json::parse_from!($read: $type);
    )*};
}

/// The half of [`read_as_text`] that reads.
macro_rules! parse_from {
    ($read:path: $type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::json::check($read(deserializer)?.parse())
            }
        }
    };
}
pub(crate) use {parse_from, read_as_object, read_as_text};

/// A deserializer for a derived struct.
pub(crate) struct Object<D> {
    pub(crate) deserializer: D,
    /// A field that must be given, and the error if it is not.
    pub(crate) required: Option<(&'static str, &'static str)>,
    /// What to give instead of a field that is not known but printed with the object.
    pub(crate) printed: Printed,
}

/// See [`Object`]; `None` for other fields.
pub(crate) type Printed = fn(&str) -> Option<&'static str>;

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Object<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        // As a map: a derived struct would also accept an array.
        self.deserializer.deserialize_map(ObjectVisitor {
            known,
            required: self.required,
            printed: self.printed,
            visitor,
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.deserializer.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct ObjectVisitor<V> {
    known: &'static [&'static str],
    required: Option<(&'static str, &'static str)>,
    printed: Printed,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(out)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<V::Value, M::Error> {
        let Self { known, required, printed, visitor } = self;
        visitor.visit_map(Fields { map, known, required, printed, given: 0, current: "" })
    }
}

/// The fields of an object, checked as they are read.
struct Fields<M> {
    map: M,
    known: &'static [&'static str],
    required: Option<(&'static str, &'static str)>,
    printed: Printed,
    /// One bit for each known field.
    given: u64,
    current: &'static str,
}

impl<M> Fields<M> {
    fn has(&self, at: usize) -> bool {
        self.given & (1 << at) != 0
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Fields<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        let Some(name) = self.map.next_key::<Cow<'_, str>>()? else {
            let is_given =
                |name: &str| (0..).zip(self.known).any(|(at, field)| *field == name && self.has(at));
            let missing = self.required.filter(|(name, _)| !is_given(name));
            return missing.map_or(Ok(None), |(_, message)| Err(M::Error::custom(message)));
        };
        let at = self.known.iter().position(|field| *field == name);
        let at = at.ok_or_else(|| {
            if let Some(instead) = (self.printed)(&name) {
                return M::Error::custom(format_args!(
                    "field `{name}` is printed, but cannot be given{instead}"
                ));
            }
            let suggestion = suggestion(&name, "fields", self.known);
            M::Error::custom(format_args!("unknown field `{name}`; {suggestion}"))
        })?;
        self.current = self.known[at];
        if self.has(at) {
            return Err(M::Error::custom(format_args!("field `{}` is given twice", self.current)));
        }
        self.given |= 1 << at;
        // The derived code knows its fields by their position, too.
        seed.deserialize((at as u64).into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, M::Error> {
        self.map.next_value_seed(seed).map_err(|error| name_field(self.current, error))
    }
}

/// Adds the field to an error, unless the message starts with it.
fn name_field<E: Error>(field: &str, error: E) -> E {
    if error.to_string().starts_with(&format!("`{field}`")) {
        return error;
    }
    E::custom(format_args!("`{field}`: {error}"))
}

/// The names of the fields of a derived struct, in order: deserialize it from this, and ignore the error.
pub(crate) struct FieldNames<'a>(pub(crate) &'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

pub(crate) fn check<T, E: fmt::Display, S: Error>(result: Result<T, E>) -> Result<T, S> {
    result.map_err(S::custom)
}

/// A field that may be absent, for which `null` is another way to write that: our own JSON writes it so.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// A whole number within the bounds of its field, which fit the field's type.
pub(crate) fn whole<'de, const MIN: i64, const MAX: i64, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i64, Error: fmt::Display>,
    D: Deserializer<'de>,
{
    let number = given::<BoundedInteger<MIN, MAX>, _>(deserializer)?;
    check(number.map(|number| T::try_from(number.0)).transpose())
}

/// A whole number within bounds.
pub(crate) struct BoundedInteger<const MIN: i64, const MAX: i64>(pub(crate) i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundedVisitor<const MIN: i64, const MAX: i64>;

        impl<const MIN: i64, const MAX: i64> Visitor<'_> for BoundedVisitor<MIN, MAX> {
            type Value = BoundedInteger<MIN, MAX>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a whole number from {MIN} to {MAX}")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    return Ok(BoundedInteger(number));
                }
                Err(E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                let too_large = || E::invalid_value(Unexpected::Unsigned(number), &self);
                let number = i64::try_from(number).map_err(|_| too_large())?;
                self.visit_i64(number)
            }
        }

        deserializer.deserialize_any(BoundedVisitor)
    }
}

/// The text of a value that is always text.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer)
}

/// The text of a duration, which may also be a number.
pub(crate) fn span_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_any(NumberOrText {
        expected: "a duration such as 90, \"90s\" or \"1m30s\"",
        accepts_fractions: true,
    })
}

/// The text of a size, which may also be a number of bytes.
pub(crate) fn size_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_any(NumberOrText {
        expected: "a size such as \"512M\" or a number of bytes",
        accepts_fractions: false,
    })
}

struct NumberOrText {
    expected: &'static str,
    /// And negative numbers, for which the parser of the text has a better message.
    accepts_fractions: bool,
}

impl NumberOrText {
    fn accept<'de, E: Error>(self, number: Unexpected<'_>, text: String) -> Result<Cow<'de, str>, E> {
        if self.accepts_fractions { Ok(text.into()) } else { Err(E::invalid_type(number, &self)) }
    }
}

impl<'de> Visitor<'de> for NumberOrText {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(number.to_string().into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.accept(Unexpected::Signed(number), number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.accept(Unexpected::Float(number), number.to_string())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }
}
