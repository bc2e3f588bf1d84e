//! Enums whose values have names.

/// Declares an enum with the name of each value, as it stands in SQL and JSON: `enum Colour { Red = "red" }`. It has
/// `ALL`, `name` and `from_name`, and serializes as its name.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $enum:ident {
            $($(#[$value_attribute:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $enum {
            $($(#[$value_attribute])* $value,)+
        }

        impl $enum {
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            $visibility fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            $visibility fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl $crate::serde::Serialize for $enum {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    named_enum! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Colour {
            Red = "red",
            DarkRed = "dark_red",
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        assert_eq!(Colour::ALL.map(Colour::name), ["red", "dark_red"]);
        assert_eq!(Colour::from_name("dark_red"), Some(Colour::DarkRed));
        assert_eq!(Colour::from_name("DarkRed"), None);
    }
}
