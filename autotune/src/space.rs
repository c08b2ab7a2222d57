//! Spaces: which configurations there are.

use crate::config::{Config, Value};
use crate::key::Dims;
use crate::legality::canonical;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use tilewright_compiler::target::Caps;

/// Most configurations of one space; a larger one is a slip, not a search.
pub const MAX_CONFIGS: usize = 1 << 20;

type Keep = dyn Fn(&Config, &Dims) -> bool + Send + Sync;

/// A union of products of parameters, less what constraints remove. [`crate::space!`] writes one shortly.
#[derive(Clone, Default)]
pub struct Space {
    products: Vec<Vec<(String, Vec<Value>)>>,
    constraints: Vec<(String, Arc<Keep>)>,
}

/// What a space has for one problem.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The configurations, in the order of the space, each once.
    pub configs: Vec<Config>,
    /// How many each constraint removed, by its name.
    pub removed: Vec<(String, usize)>,
}

impl Space {
    /// The space of one configuration without parameters.
    pub fn new() -> Self {
        Self { products: vec![Vec::new()], constraints: Vec::new() }
    }

    /// Every configuration so far, with each of these values of a parameter. `num_warps` and `num_stages` are the launch's.
    #[must_use]
    pub fn param<V: Into<Value>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        for product in &mut self.products {
            product.retain(|(n, _)| n != name);
            product.push((name.to_owned(), values.clone()));
        }
        self
    }

    /// Also the configurations of another space. Constraints of either hold for both.
    #[must_use]
    pub fn or(mut self, other: Space) -> Self {
        self.products.extend(other.products);
        self.constraints.extend(other.constraints);
        self
    }

    /// Also this one configuration.
    #[must_use]
    pub fn and_config(mut self, config: &Config) -> Self {
        let mut one: Vec<_> = config.params().map(|(n, v)| (n.to_owned(), vec![v.clone()])).collect();
        for name in [crate::config::NUM_WARPS, crate::config::NUM_STAGES] {
            one.extend(config.value(name).map(|v| (name.to_owned(), vec![v])));
        }
        self.products.push(one);
        self
    }

    /// Keeps only configurations for which `keep` is true. It must decide by what makes a result wrong or a launch
    /// impossible, or by what is never worth a measurement; it is asked again for the exact sizes on every use of a result.
    #[must_use]
    pub fn keep(mut self, name: &str, keep: impl Fn(&Config, &Dims) -> bool + Send + Sync + 'static) -> Self {
        self.constraints.push((name.to_owned(), Arc::new(keep)));
        self
    }

    /// The first configuration, whatever the constraints say: what identifies the kernel. `None` for an empty space.
    pub fn first(&self) -> Option<Config> {
        self.products.iter().find_map(|product| {
            product.iter().try_fold(Config::new(), |c, (name, values)| Some(c.with(name, values.first()?.clone())))
        })
    }

    /// How many configurations there are before constraints, counting repeated ones.
    pub fn size(&self) -> usize {
        let of = |p: &Vec<(String, Vec<Value>)>| p.iter().fold(1usize, |n, (_, v)| n.saturating_mul(v.len()));
        self.products.iter().fold(0, |n, p| n.saturating_add(of(p)))
    }

    /// The configurations for a problem.
    ///
    /// # Errors
    /// A message if there are more than [`MAX_CONFIGS`] before constraints.
    pub fn candidates(&self, dims: &Dims) -> Result<Candidates, String> {
        if self.size() > MAX_CONFIGS {
            return Err(format!(
                "the space has {} configurations, more than {MAX_CONFIGS}; take values out",
                self.size()
            ));
        }
        let mut seen = HashSet::new();
        let mut out = Candidates {
            removed: self.constraints.iter().map(|(n, _)| (n.clone(), 0)).collect(),
            ..Default::default()
        };
        for product in &self.products {
            let mut configs = vec![Config::new()];
            for (name, values) in product {
                configs = configs.iter().flat_map(|c| values.iter().map(|v| c.clone().with(name, v.clone()))).collect();
            }
            for config in configs {
                if seen.contains(&config) {
                    continue;
                }
                match self.constraints.iter().position(|(_, keep)| !keep(&config, dims)) {
                    Some(i) => out.removed[i].1 += 1,
                    None => out.configs.push(config.clone()),
                }
                seen.insert(config);
            }
        }
        out.removed.retain(|(_, n)| *n > 0);
        Ok(out)
    }

    /// Is this configuration, in the form the device distinguishes, in the space, and allowed for these sizes?
    ///
    /// # Errors
    /// The constraint it breaks, or that it is not in the space.
    pub fn allows(&self, config: &Config, dims: &Dims, caps: Option<&Caps>) -> Result<(), String> {
        let mut broken = None;
        for product in &self.products {
            let options = [crate::config::NUM_WARPS, crate::config::NUM_STAGES];
            let has = |name: &str| product.iter().any(|(p, _)| p == name);
            let known = config.params().all(|(n, _)| has(n))
                && product
                    .iter()
                    .filter(|(n, _)| !options.contains(&n.as_str()))
                    .all(|(name, values)| config.value(name).is_some_and(|v| values.contains(&v)));
            if !known {
                continue;
            }
            // The configurations that the device takes for this one.
            let mut variants = vec![Config::new()];
            for name in options {
                let values = product.iter().find(|(n, _)| n == name).map_or(&[][..], |(_, values)| values);
                if !values.is_empty() {
                    variants =
                        variants.iter().flat_map(|c| values.iter().map(|v| c.clone().with(name, v.clone()))).collect();
                }
            }
            let variants = variants.into_iter().map(|v| config.clone().with_options(v.options()));
            for variant in variants.filter(|v| canonical(v.clone(), caps) == *config) {
                match self.constraints.iter().find(|(_, keep)| !keep(&variant, dims)) {
                    Some((name, _)) => broken = Some(name),
                    None => return Ok(()),
                }
            }
        }
        Err(match broken {
            Some(name) => format!("`{config}` breaks `{name}` for {dims}"),
            None => format!("`{config}` is not in the kernel's space any more"),
        })
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.constraints.iter().map(|(n, _)| n).collect();
        f.debug_struct("Space").field("products", &self.products).field("constraints", &names).finish()
    }
}

/// A product of parameters: `space! { bm: [64, 128], num_warps: [4, 8] }`. Spaces are joined with [`Space::or`].
#[macro_export]
macro_rules! space {
    ($($name:ident : $values:expr),* $(,)?) => {
        $crate::Space::new()$(.param(stringify!($name), $values))*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(n: i64) -> Dims {
        Dims::new(&["n"], &[n]).unwrap()
    }

    #[test]
    fn products_unions_and_constraints() {
        let s = space! { bm: [64, 128], num_warps: [4, 8] }
            .or(space! { bm: [256], num_warps: [8] })
            .and_config(&Config::new().with("bm", 64))
            .keep("bm divides n", |c, d| d.get("n") % c.get::<i64>("bm").unwrap_or(1) == 0);
        assert_eq!(s.size(), 6);
        let c = s.candidates(&dims(64)).unwrap();
        let text: Vec<_> = c.configs.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["bm=64 warps=4 stages=1", "bm=64 warps=8 stages=1"]);
        assert_eq!(c.removed, [("bm divides n".to_owned(), 3)]);
        let gpu = Caps::ptx(90);
        let allows = |c: &Config, n, caps| s.allows(c, &dims(n), caps);
        assert_eq!(allows(&c.configs[0], 64, Some(&gpu)), Ok(()));
        assert!(allows(&c.configs[0], 65, Some(&gpu)).unwrap_err().contains("breaks `bm divides n` for n=65"));
        assert!(
            allows(&Config::new().with("bm", 32), 64, Some(&gpu)).unwrap_err().contains("not in the kernel's space")
        );
        assert!(allows(&Config::new().with("bm", 64).with("bk", 1), 64, Some(&gpu)).is_err());
        // One warp is in the space only where the device knows no warps.
        let one = Config::new().with("bm", 64).with("num_warps", 1);
        assert!(allows(&one, 64, Some(&gpu)).is_err());
        assert_eq!(allows(&one, 64, None), Ok(()));
        assert_eq!(s.first().unwrap().to_string(), "bm=64 warps=4 stages=1");
    }

    #[test]
    fn too_large_and_empty_spaces() {
        let huge = (0..12).fold(Space::new(), |s, i| s.param(&format!("p{i}"), 0..10));
        assert!(huge.candidates(&dims(1)).unwrap_err().contains("more than"));
        let empty = Space::new().param("a", Vec::<i64>::new());
        assert_eq!(empty.candidates(&dims(1)).unwrap().configs, []);
        assert_eq!(empty.first(), None);
    }
}
