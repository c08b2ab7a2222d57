//! One random program, as text with markers.

/// Names that methods have: also those of methods that read, of the language and of the standard library.
const METHODS: [&str; 36] = [
    "load",
    "store",
    "to",
    "map",
    "get",
    "min",
    "max",
    "len",
    "rank",
    "dim",
    "shape",
    "stride",
    "iter",
    "first",
    "last",
    "contains",
    "unwrap",
    "expect",
    "is_some",
    "is_none",
    "is_empty",
    "ptr",
    "bitcast",
    "load_or",
    "load_if",
    "store_if",
    "broadcast_to",
    "copied",
    "cloned",
    "as_ref",
    "unwrap_or",
    "absorb",
    "push",
    "set",
    "take",
    "swap",
];
/// Names that functions have.
const FUNCTIONS: [&str; 12] =
    ["helper", "load", "sum", "exp", "inf", "nan", "abs", "num_programs", "full", "get", "reshape", "clamp"];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    /// Some of the list, each once.
    fn some<'a>(&mut self, list: &[&'a str], count: usize) -> Vec<&'a str> {
        let mut left = list.to_vec();
        (0..count).map(|_| left.swap_remove(self.roll(left.len()))).collect()
    }
}

/// What a place holds.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A number that may be assigned.
    Number,
    /// A number that may not.
    Fixed,
    /// The struct of two numbers, as a place to call methods on and to borrow.
    State,
    /// A `&mut` reference to it.
    Reference,
    /// A host number.
    Host,
    /// A closure from a number to a number.
    Closure,
    /// An option of the struct.
    Optional,
}

struct Maker {
    dice: Dice,
    /// What may be named, with what it is: of two of one name the later counts.
    places: Vec<(String, Kind)>,
    /// Methods of the struct: changing, changing with a value, reading, by value, with a closure.
    methods: Vec<&'static str>,
    /// Functions: on `&mut`, on a number.
    functions: Vec<&'static str>,
    text: String,
    indent: usize,
    fresh: usize,
    /// Statements still to be made.
    budget: usize,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut dice = Dice(seed);
    let methods = dice.some(&METHODS, 6);
    let functions = dice.some(&FUNCTIONS, 2);
    let mut m =
        Maker { dice, places: Vec::new(), methods, functions, text: String::new(), indent: 2, fresh: 0, budget: 0 };
    m.state();
    m.helpers();
    m.kernel();
    m.text
}

impl Maker {
    fn line(&mut self, line: &str) {
        self.text += &"    ".repeat(self.indent);
        self.text += line;
        self.text.push('\n');
    }

    fn open(&mut self, line: &str) {
        self.line(line);
        self.indent += 1;
    }

    fn close(&mut self, line: &str) {
        self.indent -= 1;
        self.line(line);
    }

    fn name(&mut self, of: &str) -> String {
        self.fresh += 1;
        format!("{of}{}", self.fresh)
    }

    /// The places of some kinds that can be named here.
    fn visible(&self, kinds: &[Kind]) -> Vec<String> {
        let root = |p: &str| p.split(['.', '[']).next().unwrap_or(p).to_owned();
        let mut found = Vec::new();
        for (i, (place, kind)) in self.places.iter().enumerate() {
            // A later declaration hides everything of the name that was declared before.
            let hidden = self.places[i + 1..].iter().any(|(later, _)| *later == root(place));
            if kinds.contains(kind) && !hidden {
                found.push(place.clone());
            }
        }
        found
    }

    fn one(&mut self, kinds: &[Kind]) -> Option<String> {
        let found = self.visible(kinds);
        (!found.is_empty()).then(|| found[self.dice.roll(found.len())].clone())
    }

    /// Runs `f` where what it declares is gone afterwards.
    fn scope(&mut self, f: impl FnOnce(&mut Self)) {
        let places = self.places.clone();
        f(self);
        self.places = places;
    }

    // ---- expressions ------------------------------------------------------------------------------------------------

    fn leaf(&mut self) -> String {
        match self.dice.roll(8) {
            0 => match self.one(&[Kind::State, Kind::Reference]) {
                Some(place) => format!("{place}.{}", self.dice.pick(&["a", "b"])),
                None => "n".into(),
            },
            1 => "n".into(),
            _ => self.one(&[Kind::Number, Kind::Fixed]).unwrap_or_else(|| "n".into()),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let a = self.expression(depth - 1);
        let number = ["1", "2", "3", "5", "7", "11", "100"][self.dice.roll(7)];
        match self.dice.roll(14) {
            0..=2 => {
                format!("({a} {} {})", self.dice.pick(&["+", "-", "*", "^", "&", "|"]), self.expression(depth - 1))
            }
            3 => format!("({a} {} {number})", self.dice.pick(&["+", "-", "*", "/", "%", "^"])),
            4 => format!("({number} {} {a})", self.dice.pick(&["+", "-", "*", "/", "%"])),
            5 => format!("({a} {} {})", self.dice.pick(&["<<", ">>"]), 1 + self.dice.roll(4)),
            6 => format!("{}({a}, {})", self.dice.pick(&["minimum", "maximum"]), self.leaf()),
            7 => format!("where_({}, {a}, {})", self.condition(0), self.leaf()),
            8 => format!("(x + ({a} & 7)).load()"),
            9 => match self.one(&[Kind::State, Kind::Reference]) {
                Some(place) => format!("{place}.{}({a})", self.methods[2]),
                None => format!("-{a}"),
            },
            10 => match self.one(&[Kind::Host]) {
                Some(host) => format!("({a} * {host})"),
                None => format!("!{a}"),
            },
            11 => match self.one(&[Kind::Closure]) {
                Some(closure) => format!("{closure}({a})"),
                None => a,
            },
            12 if !self.functions.is_empty() => format!("{}({a})", self.functions[1]),
            _ => a,
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let (a, b) = (self.expression(depth), self.leaf());
        let op = self.dice.pick(&["<", "<=", ">", ">=", "==", "!="]);
        match self.dice.roll(7) {
            0 if depth > 0 => {
                format!("({a} {op} {b}) {} {}", self.dice.pick(&["&&", "||"]), self.condition(depth - 1))
            }
            1 => format!("{} {op} {a}", self.dice.roll(20)),
            2 | 3 => format!("{a} {op} {}", self.dice.roll(20)),
            4 if depth > 0 => format!("!({a} {op} {b})"),
            _ => format!("{a} {op} {b}"),
        }
    }

    // ---- items ------------------------------------------------------------------------------------------------------

    fn state(&mut self) {
        let names = self.methods.clone();
        self.line("#[derive(Clone, Copy, Carry)]");
        self.line("pub struct S { pub a: V, pub b: V }");
        self.open("impl S {");
        let (p, q) = (self.dice.pick(&["+", "^", "-"]), self.dice.pick(&["+", "*", "^"]));
        self.line(&format!(
            "pub fn {}(&mut self, v: V) {{ self.a = self.a {p} v; self.b = (self.b * 3) {q} self.a; }}",
            names[0]
        ));
        self.line(&format!(
            "pub fn {}(&mut self, v: V) -> V {{ self.b {q}= v + self.a; self.a {p}= 1; self.b }}",
            names[1]
        ));
        self.line(&format!("pub fn {}(&self, v: V) -> V {{ (self.a {q} v) - self.b }}", names[2]));
        self.line(&format!("pub fn {}(self, v: V) -> S {{ S {{ a: self.b, b: self.a {p} v }} }}", names[3]));
        self.line(&format!("pub fn {}(&mut self, f: impl Fn(V) -> V) {{ self.a = f(self.a); }}", names[4]));
        self.text += "        #[device_fn] ";
        let indent = std::mem::take(&mut self.indent);
        self.open(&format!("pub fn {}(&mut self, x: Ptr<i32>, n: V, v: V) {{", names[5]));
        self.indent = indent + 1;
        let kept = std::mem::take(&mut self.functions);
        self.scope(|m| {
            m.places = ["self.a", "self.b"].map(|p| (p.to_owned(), Kind::Number)).to_vec();
            m.places.push(("v".into(), Kind::Fixed));
            m.places.push(("self".into(), Kind::Reference));
            m.budget = 3;
            m.block(2);
        });
        self.functions = kept;
        self.close("}");
        self.close("}");
        self.line("#[derive(Clone, Copy, Carry)]");
        self.line("pub struct O { pub s: S, pub t: (V, V) }");
        // No state of the device as a whole, for one field is a host value.
        self.line("pub struct M { pub s: S, pub k: usize }");
    }

    fn helpers(&mut self) {
        let (change, number) = (self.functions[0], self.functions[1]);
        let kept = std::mem::take(&mut self.functions);
        self.text += "        #[device_fn] ";
        let indent = std::mem::take(&mut self.indent);
        self.open(&format!("pub fn {change}(s: &mut S, x: Ptr<i32>, n: V, v: V) {{"));
        self.indent = indent + 1;
        self.scope(|m| {
            m.places = vec![("v".into(), Kind::Fixed), ("s".into(), Kind::Reference)];
            m.budget = 4;
            m.block(2);
        });
        self.close("}");
        self.line(&format!("pub fn {number}(v: V) -> V {{ v * 5 + 1 }}"));
        self.functions = kept;
        self.line(&format!("macro_rules! touch {{ ($s:expr, $v:expr) => {{ $s.{}($v) }}; }}", self.methods[0]));
        self.line("macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }");
    }

    fn kernel(&mut self) {
        self.text += "        #[kernel] ";
        let indent = std::mem::take(&mut self.indent);
        self.open("pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: @number) {");
        self.indent = indent + 1;
        self.line("let id = program_id(0);");
        self.line("let mut a = (x + id).load();");
        self.line("let mut b = scalar::<i32>(4);");
        self.line("let mut s = S { a: b, b: a };");
        self.line("let mut o = O { s: S { a, b }, t: (b, a) };");
        self.line("let mut m = M { s: S { a: b, b }, k: 3 };");
        self.line("let mut list = vec![S { a, b: a }; 2];");
        self.line("let mut opt = Some(S { a: b, b: a });");
        self.line("let mut pair = (a, b);");
        self.line("let mut arr = [b, a];");
        self.line("let c = a + 1;");
        self.line("let f = |v: V| v * 3 + c;");
        for number in ["a", "b", "pair.0", "pair.1", "arr[0]", "arr[1]", "o.t.0", "o.t.1"] {
            self.places.push((number.into(), Kind::Number));
        }
        for state in ["s", "o.s", "m.s", "list[0]", "list[1]"] {
            self.places.push((state.into(), Kind::State));
        }
        for fixed in ["id", "c"] {
            self.places.push((fixed.into(), Kind::Fixed));
        }
        self.places.push(("m.k".into(), Kind::Host));
        self.places.push(("f".into(), Kind::Closure));
        self.places.push(("opt".into(), Kind::Optional));
        self.budget = [1, 5, 9][self.dice.roll(3)];
        match self.budget {
            1 => self.device_for(1),
            _ => self.block(3),
        }
        let last = [
            "a",
            "b",
            "s.a",
            "s.b",
            "o.s.a",
            "o.s.b",
            "o.t.0",
            "o.t.1",
            "m.s.a",
            "m.s.b",
            "list[0].a",
            "list[1].b",
            "pair.0",
            "pair.1",
            "arr[0]",
            "arr[1]",
        ];
        // What is lost shows at once where it is stored at the end: the value of a loop is used outside it. So most is not.
        for (slot, value) in last.iter().enumerate() {
            if self.dice.roll(4) == 0 {
                self.line(&format!("(y + id * 64 + {slot}).store({value});"));
            }
        }
        if self.dice.roll(4) == 0 {
            self.line(
                "if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }",
            );
        }
        self.close("}");
    }

    // ---- statements -------------------------------------------------------------------------------------------------

    fn block(&mut self, depth: usize) {
        for _ in 0..2 + self.dice.roll(4) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        let nested = if depth > 0 { 22 } else { 12 };
        match self.dice.roll(nested) {
            0 | 1 => self.assign(),
            2..=4 => self.change(),
            5 => self.observe(),
            6 => self.local(),
            7 => {
                if let (Some(p), Some(q)) = (self.one(&[Kind::Number]), self.one(&[Kind::Number])) {
                    let (e, g) = (self.expression(1), self.expression(1));
                    match p == q {
                        true => self.line(&format!("{p} = {e};")),
                        false => self.line(&format!("({p}, {q}) = ({e}, {g});")),
                    }
                }
            }
            8 if !self.functions.is_empty() => {
                if let Some(p) = self.one(&[Kind::Number]).filter(|p| !p.contains(['.', '['])) {
                    let e = self.expression(1);
                    self.line(&format!("let given = {e}; add!({p}, given);"));
                }
            }
            9 => {
                if let Some(p) = self.one(&[Kind::Number]) {
                    let (condition, e, g) = (self.condition(1), self.expression(1), self.expression(1));
                    self.line(&format!("{p} = if {condition} {{ {e} }} else {{ {g} }};"));
                }
            }
            8 | 10 | 11 => self.change(),
            12..=14 => self.device_for(depth),
            15 => self.device_while(depth),
            16 | 17 => self.branch(depth),
            18 => self.unrolled(depth),
            _ => self.borrowed(depth),
        }
    }

    fn assign(&mut self) {
        let e = self.expression(2);
        match self.one(&[Kind::Number]) {
            Some(p) => {
                let op = self.dice.pick(&["=", "=", "+=", "-=", "^=", "*="]);
                self.line(&format!("{p} {op} {e};"));
            }
            None => {
                if let Some(p) = self.one(&[Kind::State, Kind::Reference]) {
                    let field = self.dice.pick(&["a", "b"]);
                    self.line(&format!("{p}.{field} = {e};"));
                }
            }
        }
    }

    /// Changes a struct by one of the many ways.
    fn change(&mut self) {
        let Some(place) = self.one(&[Kind::State, Kind::Reference]) else { return self.assign() };
        let reference = self.places.iter().rev().any(|(p, k)| *p == place && *k == Kind::Reference);
        let (mut e, names) = (self.expression(1), self.methods.clone());
        // An index is no plain borrow: its arguments are evaluated before.
        if place.contains('[') {
            self.line(&format!("let given = {e};"));
            e = "given".into();
        }
        let behind = if reference { format!("(*{place})") } else { place.clone() };
        let borrowed = if reference { place.clone() } else { format!("&mut {place}") };
        let text = match self.dice.roll(9) {
            0 | 1 => format!("{place}.{}({e});", names[0]),
            2 => match self.one(&[Kind::Number]).filter(|p| !p.starts_with("self")) {
                Some(p) => format!("{p} = {place}.{}({e});", names[1]),
                None => format!("{place}.{}({e});", names[1]),
            },
            // Declared after the struct and the functions. A macro may do anything with `m`, which is no state as a whole.
            3 if !self.functions.is_empty() && !place.starts_with("m.") => {
                format!("let given = {e}; touch!({place}, given);")
            }
            4 if reference => format!("*{place} = {place}.{}({e});", names[3]),
            4 => format!("{place} = {place}.{}({e});", names[3]),
            5 => {
                let v = self.leaf();
                match v.starts_with(&place) {
                    true => format!("{place}.{}(|t| t * 3 + n);", names[4]),
                    false => format!("let held = {v}; {place}.{}(|t| t * 3 + held);", names[4]),
                }
            }
            6 if !self.functions.is_empty() => {
                format!("let given = {e}; {}({borrowed}, x, n, given);", self.functions[0])
            }
            6 | 7 => format!("{behind}.{}({e});", names[0]),
            _ if self.functions.is_empty() => format!("{behind}.a += {e};"),
            _ => format!("{place}.{}(x, n, {e});", names[5]),
        };
        self.line(&text);
    }

    /// Writes something where it shows what was known there.
    fn observe(&mut self) {
        if self.visible(&[Kind::Fixed]).iter().all(|p| p != "id") {
            return;
        }
        let (value, slot) = (self.expression(1), 18 + self.dice.roll(14));
        match self.one(&[Kind::Fixed]).filter(|k| k.starts_with('k')) {
            Some(k) => self.line(&format!("(y + id * 64 + 32 + (({k} * 7 + {slot}) & 31)).store({value});")),
            None => self.line(&format!("(y + id * 64 + {slot}).store({value});")),
        }
    }

    /// A new variable, perhaps with the name of another.
    fn local(&mut self) {
        let e = self.expression(2);
        match self.dice.roll(4) {
            0 => {
                let name = self.name("v");
                self.line(&format!("let mut {name} = {e};"));
                self.places.push((name, Kind::Number));
            }
            1 => {
                let (p, q, g) = (self.name("p"), self.name("q"), self.expression(1));
                self.line(&format!("let ({p}, mut {q}) = ({e}, {g});"));
                self.places.push((p, Kind::Fixed));
                self.places.push((q, Kind::Number));
            }
            2 => {
                let name = self.name("t");
                if let Some(from) = self.one(&[Kind::State]) {
                    self.line(&format!("let mut {name} = {from};"));
                    self.places.push((name, Kind::State));
                }
            }
            _ => {
                let found: Vec<String> =
                    self.visible(&[Kind::Fixed]).into_iter().filter(|f| f.starts_with(['p', 'w'])).collect();
                let name = match found.first() {
                    Some(known) => known.clone(),
                    None => self.name("w"),
                };
                self.line(&format!("let {name} = {e};"));
                self.places.push((name, Kind::Fixed));
            }
        }
    }

    fn bound(&mut self) -> String {
        match self.dice.roll(4) {
            0 => "n".into(),
            1 => format!("({} & 3)", self.leaf()),
            _ => (1 + self.dice.roll(4)).to_string(),
        }
    }

    fn device_for(&mut self, depth: usize) {
        let (k, bound) = (self.name("k"), self.bound());
        let head = match self.dice.roll(4) {
            0 => format!("(@lo 0 @to {bound} @hi).step_by(2)"),
            1 => format!("range({bound}, -1, -1)"),
            _ => format!("@lo 0 @to {bound} @hi"),
        };
        self.open(&format!("for {k} in {head} {{"));
        self.scope(|m| {
            m.places.push((k, Kind::Fixed));
            // State that changes in the loop, and shows there alone.
            let changed = m.one(&[Kind::State, Kind::Reference]);
            let seen = m.visible(&[Kind::Fixed]).iter().any(|p| p == "id");
            if let Some(place) = changed.filter(|_| seen) {
                let (e, name) = (m.leaf(), m.methods[m.dice.roll(2)]);
                let index = m.places.last().map_or_else(String::new, |(k, _)| k.clone());
                m.line(&format!("let given = {e}; {place}.{name}(given);"));
                m.line(&format!("(y + id * 64 + 32 + ({index} & 31)).store({place}.a - {place}.b);"));
            }
            m.block(depth - 1);
            m.observe();
        });
        self.close("}");
    }

    fn device_while(&mut self, depth: usize) {
        let (c, bound) = (self.name("c"), 1 + self.dice.roll(3));
        self.line(&format!("let mut {c} = scalar::<i32>(0);"));
        let more = match self.dice.roll(2) {
            0 => String::new(),
            _ => format!(" && {}", self.condition(0)),
        };
        self.open(&format!("while {c} < {bound}{more} {{"));
        self.scope(|m| {
            m.places.push((c.clone(), Kind::Fixed));
            m.block(depth - 1);
            m.change();
            m.line(&format!("{c} += 1;"));
        });
        self.close("}");
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.condition(1);
        self.open(&format!("if {condition} {{"));
        self.scope(|m| {
            m.change();
            m.block(depth - 1);
        });
        match self.dice.roll(3) {
            0 => self.close("}"),
            1 => {
                self.close("} else {");
                self.indent += 1;
                self.scope(|m| m.block(depth - 1));
                self.close("}");
            }
            _ => {
                let condition = self.condition(0);
                self.close(&format!("}} else if {condition} {{"));
                self.indent += 1;
                self.scope(|m| m.change());
                self.close("}");
            }
        }
    }

    fn unrolled(&mut self, depth: usize) {
        let u = self.name("u");
        let times = 1 + self.dice.roll(2);
        self.open(&format!("for {u} in unroll(0..{times}usize) {{"));
        self.scope(|m| {
            m.places.push((u, Kind::Host));
            m.block(depth - 1);
        });
        self.close("}");
    }

    /// Work through a reference, whose type no syntax tells.
    fn borrowed(&mut self, depth: usize) {
        let top = |places: &[(String, Kind)], name: &str| places.iter().any(|(p, _)| p.starts_with(name));
        let r = self.name("r");
        let (head, taken, end) = match self.dice.roll(6) {
            0 if top(&self.places, "list[") => (format!("for {r} in &mut list {{"), "list", "}"),
            1 if top(&self.places, "list[") => (format!("for {r} in list.iter_mut() {{"), "list", "}"),
            2 if top(&self.places, "list[") => (format!("if let Some({r}) = list.get_mut(1) {{"), "list", "}"),
            3 if top(&self.places, "opt") => (format!("if let Some({r}) = &mut opt {{"), "opt", "}"),
            4 if top(&self.places, "opt") => (format!("if let Some({r}) = opt.as_mut() {{"), "opt", "}"),
            _ => match self.one(&[Kind::State]) {
                Some(place) => {
                    let root = place.split(['.', '[']).next().unwrap_or(&place).to_owned();
                    let how = self.dice.pick(&["let", "let", "let mut"]);
                    self.open("{");
                    self.line(&format!("{how} {r} = &mut {place};"));
                    self.scope(|m| {
                        m.places.retain(|(p, _)| p.split(['.', '[']).next() != Some(&root));
                        m.places.push((r, Kind::Reference));
                        m.device_for(depth);
                        m.block(depth - 1);
                    });
                    return self.close("}");
                }
                None => return self.assign(),
            },
        };
        self.open(&head);
        self.scope(|m| {
            m.places.retain(|(p, _)| p.split(['.', '[']).next() != Some(taken));
            m.places.push((r, Kind::Reference));
            m.device_for(depth);
            m.block(depth - 1);
        });
        self.close(end);
    }
}
