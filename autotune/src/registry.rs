//! The tunable kernels of this program. A kernel submits itself where it is written; every binary that links it lists it.

use crate::tunable::Tunable;
use std::sync::LazyLock;

/// How a kernel is registered; [`crate::register!`] makes one.
#[derive(Debug)]
pub struct Registration {
    /// Gives the kernel.
    pub tunable: fn() -> &'static Tunable,
    /// Where it is registered.
    pub place: &'static str,
}

inventory::collect!(Registration);

/// Registers kernels: each argument is the path of a `fn() -> &'static Tunable`.
#[macro_export]
macro_rules! register {
    ($($tunable:expr),* $(,)?) => { $(
        $crate::__private::inventory::submit! {
            $crate::registry::Registration { tunable: $tunable, place: concat!(module_path!(), " (", file!(), ":", line!(), ")") }
        }
    )* };
}

/// Every kernel registered in this program, by name, with where it was registered. Of two of one name only the first is
/// reachable by it; the others are listed too.
pub fn all() -> &'static [(&'static Tunable, &'static str)] {
    static ALL: LazyLock<Vec<(&'static Tunable, &'static str)>> = LazyLock::new(|| {
        let mut all: Vec<_> = inventory::iter::<Registration>().map(|r| ((r.tunable)(), r.place)).collect();
        // Registered twice by two paths is registered once.
        all.sort_by_key(|(t, place)| (t.name(), *place));
        all.dedup_by_key(|(t, _)| std::ptr::from_ref::<Tunable>(t).addr());
        all
    });
    &ALL
}

/// The kernel of this name, or a message with the nearest name there is.
///
/// # Errors
/// That there is none.
pub fn find(name: &str) -> Result<&'static Tunable, String> {
    if let Some((t, _)) = all().iter().find(|(t, _)| t.name() == name) {
        return Ok(t);
    }
    let names: Vec<_> = all().iter().map(|(t, _)| t.name()).collect();
    if names.is_empty() {
        return Err(format!("no kernel is called `{name}`: this program registers none"));
    }
    let near = names.iter().filter(|n| n.contains(name) || name.contains(**n)).copied().next();
    let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
    Err(format!("no kernel is called `{name}`{hint} This program has {}", names.join(", "))
        .replace("` This", "`. This"))
}
