//! Inputs made from good ones: bytes flipped, pieces moved, numbers made extreme, brackets nested deeply.
//!
//! The mutations know what the formats have in common: lines, numbers in decimal digits, brackets, quoted words. What
//! only one format has (a length field, a checksum) its target repairs afterwards.

/// Reproducible choices: xorshift64* (Vigna, 2016).
pub struct Rng(u64);

impl Rng {
    /// The same choices for the same seed.
    pub fn new(seed: u64) -> Self {
        // splitmix64's finaliser, so that neighbouring seeds have nothing in common.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() >> 11) as usize % n }
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Numbers at which something ends.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "255",
    "256",
    "65535",
    "65536",
    "1048576",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999999999999999999999",
    "1e308",
    "1e400",
    "-1e-400",
    "0.1",
    "NaN",
    "1e999999999",
];

/// A good input with one to eight changes; `words` are what the format's texts are made of.
pub fn mutate(rng: &mut Rng, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = rng.pick(corpus).clone();
    let changes = 1 + rng.below(3) * rng.below(4);
    for _ in 0..changes.max(1) {
        change(rng, &mut input, corpus, words);
        // Longer ones find nothing that these do not.
        input.truncate(1 << 18);
    }
    input
}

fn change(rng: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
    match rng.below(16) {
        0 => {
            if let Some(at) = place(rng, input) {
                input[at] ^= 1 << rng.below(8);
            }
        }
        1 => {
            if let Some(at) = place(rng, input) {
                input[at] = rng.next() as u8;
            }
        }
        2 => {
            let (from, to) = range(rng, input);
            input.drain(from..to);
        }
        3 => {
            let (from, to) = range(rng, input);
            let piece = input[from..to].to_vec();
            insert(rng, input, &piece);
        }
        4 => {
            let other = rng.pick(corpus).clone();
            let (from, to) = range(rng, &other);
            insert(rng, input, &other[from..to]);
        }
        5 => {
            let at = rng.below(input.len() + 1);
            input.truncate(at);
        }
        6..=8 => {
            let number = *rng.pick(NUMBERS);
            replace(rng, input, number.as_bytes(), |b| b.is_ascii_digit());
        }
        9 if !words.is_empty() => {
            let word = *rng.pick(words);
            replace(rng, input, word.as_bytes(), |b| b.is_ascii_alphanumeric() || b == b'_');
        }
        10 if !words.is_empty() => {
            let word = *rng.pick(words);
            insert(rng, input, word.as_bytes());
        }
        11 => lines(rng, input),
        12 => nest(rng, input),
        13 => {
            let (from, to) = bracketed(rng, input);
            input.drain(from..to);
        }
        14 => {
            let (from, to) = bracketed(rng, input);
            let piece = input[from..to].to_vec();
            insert(rng, input, &piece);
        }
        _ => {
            // One thing in place of another of the same kind, from anywhere.
            let other = rng.pick(corpus).clone();
            let (a, b) = (bracketed(rng, input), bracketed(rng, &other));
            input.splice(a.0..a.1, other[b.0..b.1].iter().copied());
        }
    }
}

fn place(rng: &mut Rng, input: &[u8]) -> Option<usize> {
    (!input.is_empty()).then(|| rng.below(input.len()))
}

fn range(rng: &mut Rng, input: &[u8]) -> (usize, usize) {
    let from = rng.below(input.len() + 1);
    let longest = [4, 32, 512][rng.below(3)];
    (from, (from + rng.below(longest)).min(input.len()))
}

fn insert(rng: &mut Rng, input: &mut Vec<u8>, piece: &[u8]) {
    let at = rng.below(input.len() + 1);
    input.splice(at..at, piece.iter().copied());
}

/// Puts `new` in the place of a run of bytes that `like` accepts.
fn replace(rng: &mut Rng, input: &mut Vec<u8>, new: &[u8], like: impl Fn(u8) -> bool) {
    let from = rng.below(input.len() + 1);
    let Some(first) = input[from..].iter().position(|&b| like(b)).map(|i| from + i) else { return };
    let start = input[..first].iter().rposition(|&b| !like(b)).map_or(0, |i| i + 1);
    let end = input[first..].iter().position(|&b| !like(b)).map_or(input.len(), |i| first + i);
    input.splice(start..end, new.iter().copied());
}

/// Repeats, removes or exchanges lines.
fn lines(rng: &mut Rng, input: &mut Vec<u8>) {
    let mut all: Vec<Vec<u8>> = input.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if all.is_empty() {
        return;
    }
    let (i, j) = (rng.below(all.len()), rng.below(all.len()));
    match rng.below(3) {
        0 => all.swap(i, j),
        1 => drop(all.remove(i)),
        _ => {
            let line = all[i].clone();
            all.insert(j, line);
        }
    }
    *input = all.concat();
}

/// Puts a piece into many brackets, as deep as only a recursion minds.
fn nest(rng: &mut Rng, input: &mut Vec<u8>) {
    let (open, close): (&[u8], &[u8]) =
        *rng.pick(&[(&b"["[..], &b"]"[..]), (b"{\"a\":", b"}"), (b"(", b")"), (b"{", b"}"), (b"[[0],", b"]")]);
    let depth = *rng.pick(&[3, 130, 2_000, 30_000]);
    let (from, to) = bracketed(rng, input);
    let mut piece = open.repeat(depth);
    piece.extend_from_slice(&input[from..to]);
    // Half of them are left open.
    if rng.below(2) == 0 {
        piece.extend(close.repeat(depth));
    }
    input.splice(from..to, piece);
}

/// A piece from an opening bracket or quote to the one that closes it, or any short piece.
fn bracketed(rng: &mut Rng, input: &[u8]) -> (usize, usize) {
    let from = rng.below(input.len() + 1);
    let Some(start) = input[from..].iter().position(|b| b"[{(\"".contains(b)).map(|i| from + i) else {
        return range(rng, input);
    };
    let (open, close) = match input[start] {
        b'[' => (b'[', b']'),
        b'{' => (b'{', b'}'),
        b'(' => (b'(', b')'),
        _ => {
            let end = input[start + 1..].iter().position(|&b| b == b'"').map_or(input.len(), |i| start + i + 2);
            return (start, end);
        }
    };
    let mut depth = 0usize;
    for (i, &b) in input[start..].iter().enumerate() {
        depth += usize::from(b == open);
        if b == close {
            depth -= 1;
            if depth == 0 {
                return (start, start + i + 1);
            }
        }
    }
    (start, input.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_input_and_many_seeds_many() {
        let corpus = [b"{\"a\": [1, 2, {\"b\": 3}]}\nsecond line 17\n".to_vec()];
        let of = |seed| mutate(&mut Rng::new(seed), &corpus, &["word"]);
        assert_eq!(of(5), of(5));
        let different: std::collections::HashSet<_> = (0..500).map(of).collect();
        assert!(different.len() > 300, "{}", different.len());
    }

    #[test]
    fn nothing_is_an_input_too() {
        let corpus = [Vec::new()];
        for seed in 0..2000 {
            mutate(&mut Rng::new(seed), &corpus, &["word"]);
        }
    }
}
