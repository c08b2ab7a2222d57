//! Enums whose variants have names in IR text.

/// Declares an enum of op names with `name`, `ALL`, `Display` and `FromStr`.
macro_rules! names {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $enum { $($(#[$vdoc])* $variant),* }

        impl $enum {
            /// Every variant, in order.
            pub const ALL: &'static [$enum] = &[$($enum::$variant),*];

            /// The name in IR text.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name),* }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $enum {
            type Err = ();
            fn from_str(s: &str) -> Result<Self, ()> {
                $enum::ALL.iter().copied().find(|v| v.name() == s).ok_or(())
            }
        }
    };
}

pub(crate) use names;
