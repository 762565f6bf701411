//! Tables of configuration keys. Each role has one in its own crate, written with [`keys!`]: a line has a key, its type,
//! its default, what it means, and whether it can change while the role runs. Out of it come the structure of the role's
//! settings with its defaults, the reader of each key, the list of keys for `-reconfig`, and the page of the book.
//!
//! Where values come from is not known here: see the crate `cairn-conf`.

mod kind;
pub mod value;
mod wrong_value;

pub use kind::*;
pub use wrong_value::WrongValue;

/// Puts a value into settings of type `C`.
pub type Set<C> = fn(&mut C, &str) -> Result<(), WrongValue>;

/// One key of those that make settings of type `C`.
#[derive(Debug)]
pub struct Key<C: 'static> {
    /// As it is written in files.
    pub name: &'static str,
    /// What its values are, in a few words.
    pub takes: &'static str,
    /// The value that stands for leaving it out, as it would be written; or words where no one value does.
    pub default: &'static str,
    /// Whether a running role can take a new value (`-reconfig`).
    pub is_live: bool,
    /// What it is for.
    pub meaning: &'static str,
    /// Puts a value into the settings; `None` where that takes more than this one value.
    pub set: Option<Set<C>>,
}

impl<C> Key<C> {
    /// The default as it would be written; `None` where leaving the key out is another thing than any value, or the
    /// default depends on the machine.
    pub fn default_value(&self) -> Option<&'static str> {
        Some(self.default).filter(|text| !text.is_empty() && !text.contains(' '))
    }
}

/// The names and defaults of keys that can change while a role runs.
pub fn live<C>(keys: &[Key<C>]) -> Vec<(&'static str, &'static str)> {
    keys.iter().filter(|key| key.is_live).map(|key| (key.name, key.default)).collect()
}

/// The keys with the defaults that a file could say.
pub fn defaults<C>(keys: &[Key<C>]) -> Vec<(&'static str, &'static str)> {
    keys.iter().filter_map(|key| Some((key.name, key.default_value()?))).collect()
}

/// Writes the structure of a role's settings, its defaults, and the table `KEYS` of the keys that make it.
///
/// - `field: Type, "key" = "default" as KIND;` is a setting that a key makes, for which see [`Kind`]. With `= value` behind
///   the type that value is the default, and the text only says so: for those that depend on the machine.
/// - `"key" = "default" as KIND => field.of.part;` sets a field of a part whose structure stands elsewhere, which has the
///   same default by itself.
/// - `"key" = "default" as "words";` is read by hand, since it takes more than its value.
/// - `field: Type = value;` is a setting that no key makes, or one that is read by hand.
///
/// `, live Name` makes a key one that can change while the role runs, and `Name` a case of the enumeration that is
/// named behind the structure: who changes keys matches on that, so that none is forgotten.
#[macro_export]
macro_rules! keys {
    (
        $(#[$about:meta])*
        pub struct $Settings:ident $(, live $Live:ident)? {
            $(
                $(#[doc = $doc:literal])*
                $field:ident: $Type:ty $(= $value:expr)?,
                $key:literal = $default:literal as $kind:expr $(, live $live:ident)?;
            )*
        }
        parts {
            $(
                $(#[doc = $part_doc:literal])*
                $part_key:literal = $part_default:literal as $part_kind:expr
                => $part:ident.$inner:ident $(, live $part_live:ident)?;
            )*
        }
        by_hand {
            $(
                $(#[doc = $hand_doc:literal])*
                $hand_key:literal = $hand_default:literal as $takes:literal $(, live $hand_live:ident)?;
            )*
        }
        others {
            $(
                $(#[$other_about:meta])*
                $other:ident: $OtherType:ty = $other_value:expr;
            )*
        }
    ) => {
        $(#[$about])*
        pub struct $Settings {
            $(
                $(#[doc = $doc])*
                #[doc = concat!("\n\nKey `", $key, "`, by default `", $default, "`.")]
                pub $field: $Type,
            )*
            $(
                $(#[$other_about])*
                pub $other: $OtherType,
            )*
        }

        impl Default for $Settings {
            fn default() -> $Settings {
                $Settings {
                    $($field: $crate::keys!(@default [$($value)?] [$kind, $default]),)*
                    $($other: $other_value,)*
                }
            }
        }

        impl $Settings {
            /// The keys that make these settings.
            pub const KEYS: &'static [$crate::Key<$Settings>] = &[
                $(
                    $crate::Key {
                        name: $key,
                        takes: {
                            const KIND: $crate::Kind<$Type> = $kind;
                            KIND.takes
                        },
                        default: $default,
                        is_live: $crate::keys!(@is_live $($live)?),
                        meaning: concat!($($doc),*),
                        set: Some(|settings: &mut $Settings, text: &str| {
                            settings.$field = $kind.parse(text)?;
                            Ok(())
                        }),
                    },
                )*
                $(
                    $crate::Key {
                        name: $part_key,
                        takes: $part_kind.takes,
                        default: $part_default,
                        is_live: $crate::keys!(@is_live $($part_live)?),
                        meaning: concat!($($part_doc),*),
                        set: Some(|settings: &mut $Settings, text: &str| {
                            settings.$part.$inner = $part_kind.parse(text)?;
                            Ok(())
                        }),
                    },
                )*
                $(
                    $crate::Key {
                        name: $hand_key,
                        takes: $takes,
                        default: $hand_default,
                        is_live: $crate::keys!(@is_live $($hand_live)?),
                        meaning: concat!($($hand_doc),*),
                        set: None,
                    },
                )*
            ];
        }

        $crate::keys!(@live [$($Live)?]
            $($($live $key)?)*
            $($($part_live $part_key)?)*
            $($($hand_live $hand_key)?)*
        );
    };
    (@live []) => {};
    (@live [$Live:ident] $($case:ident $key:literal)*) => {
        /// Keys that can change while the role runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $Live {
            $(#[doc = concat!("`", $key, "`")] $case,)*
        }

        impl $Live {
            /// By the key's name.
            pub(crate) fn of(name: &str) -> Option<$Live> {
                match name {
                    $($key => Some($Live::$case),)*
                    _ => None,
                }
            }
        }
    };
    (@default [$value:expr] [$($from_key:tt)*]) => { $value };
    (@default [] [$kind:expr, $default:literal]) => { $crate::by_default(&$kind, $default) };
    (@is_live) => { false };
    (@is_live $live:ident) => { true };
}

#[cfg(test)]
mod tests;
