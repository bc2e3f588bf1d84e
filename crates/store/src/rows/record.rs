//! Structs whose fields are the columns of a table, so that one declaration reads and inserts a row.

use super::sql::Row;
use super::value::Value;
use crate::Result;

/// A column and its value.
pub(crate) type ColumnValue<'a> = (&'static str, Value<'a>);

/// A struct that [`record`] declares.
pub(crate) trait Record: Sized {
    /// The fields in a `select`, each after a comma.
    const COLUMNS: &'static str;
    /// Reads a row of [`select`].
    fn read(row: &Row<'_>) -> Result<Self>;
    /// The fields that are columns of the table.
    fn values(&self) -> Vec<ColumnValue<'_>>;
}

/// The statement that selects records, after the key of each.
pub(crate) fn select<T: Record>(key: &str, from: &str) -> String {
    format!("select {key}{} from {from}", T::COLUMNS)
}

/// The statement that inserts these values, which are its parameters.
pub(crate) fn insert(table: &str, values: &[ColumnValue<'_>], on_conflict: &str) -> String {
    let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
    let parameters: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let (columns, parameters) = (columns.join(", "), parameters.join(", "));
    format!("insert into {table} ({columns}) values ({parameters}) {on_conflict}")
}

/// Declares structs that are [`Record`]s, and can be lines of JSON. A field is the column with its name. With
/// `field: Type = "SQL"` it is that expression, and is not inserted. Fields in brackets at the end are not read either.
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(= $sql:literal)?,)*
            $([$($(#[$rest_meta:meta])* $rest:ident: $rest_type:ty),*])?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            $($($(#[$rest_meta])* pub $rest: $rest_type,)*)?
        }

        impl $crate::rows::record::Record for $name {
            const COLUMNS: &'static str =
                concat!($(", ", $crate::rows::record::record!(@column $field $($sql)?)),*);

            fn read(row: &$crate::rows::Row<'_>) -> Result<Self, $crate::StoreError> {
                let mut columns = 1..;
                let mut next = || columns.next().expect("there is always another number");
                Ok(Self {
                    $($field: row.get(next())?,)*
                    $($($rest: <$rest_type>::default(),)*)?
                })
            }

            fn values(&self) -> Vec<$crate::rows::record::ColumnValue<'_>> {
                let values = [$($crate::rows::record::record!(@value self $field $($sql)?)),*];
                values.into_iter().flatten().collect()
            }
        }
    )*};
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $sql:literal) => { $sql };
    (@value $self:ident $field:ident) => {
        Some((stringify!($field), $crate::rows::value::ToValue::to_value(&$self.$field)))
    };
    (@value $self:ident $field:ident $sql:literal) => { None };
}

pub(crate) use record;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::UniqueKeyLine;

    #[test]
    fn a_record_selects_every_field_and_inserts_only_columns() {
        assert_eq!(select::<UniqueKeyLine>("k.seq", "t"), "select k.seq, key, j.id, held_until from t");
        let line = UniqueKeyLine { key: "k".to_owned(), job: "a".to_owned(), held_until: None };
        let values = line.values();
        assert_eq!(values, [("key", Value::Text("k")), ("held_until", Value::Null)]);
        assert_eq!(insert("t", &values, "").trim(), "insert into t (key, held_until) values (?1, ?2)");
    }
}
