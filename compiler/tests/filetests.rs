//! Runs the cases under `tests/filetests`: each `.tile` file is a kernel of Tile IR, each `.thread` file a function of
//! Thread IR.
//!
//! A file is the text of one kernel, begun by one or more lines `; test COMMAND ARGUMENTS`; the commands are in
//! [`COMMANDS`] and [`run_thread::COMMANDS`]. What a command gives is compared with the comment lines after a line
//! `; expected:`, at the end of the file, one such block for each command that gives text. `TILEWRIGHT_BLESS=1` rewrites
//! these blocks and the `; error:` remarks; read the difference before you commit it. `TILEWRIGHT_FILETESTS=word` runs
//! only the files with `word` in their path.

mod common;
mod run_kernel;
mod run_thread;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use tilewright_compiler::analysis;
use tilewright_compiler::passes;
use tilewright_compiler::tile::parse::every_op;
use tilewright_compiler::tile::{Function, parse, print_errors, verify};

/// One command of one file.
struct Case<'a> {
    /// The file without the expected blocks: places in messages are those in the file.
    text: &'a str,
    /// What stands after the command's name.
    arguments: &'a str,
}

/// What a command gives.
enum Outcome {
    /// All is well.
    Pass,
    /// This text, to be compared with the expected block.
    Text(String),
    /// Mistakes by line of the file (from 1), to be compared with the `; error:` remarks.
    Errors(Vec<(u32, String)>),
}

type Command = fn(&Case) -> Result<Outcome, String>;

/// The commands by name. To add one, add a line here and a function below.
const COMMANDS: &[(&str, Command)] = &[
    // The kernel is valid.
    ("verify", test_verify),
    // The normalised text of the kernel, which need not be valid.
    ("parse", test_parse),
    // The message about text that cannot be parsed.
    ("parse-error", test_parse_error),
    // Each broken rule is remarked on the line it is found in: `; error: part of the message` after the op, or in a
    // line of its own below. Mistakes of no op belong to the line that begins the kernel.
    ("verify-error", test_verify_error),
    // The kernel with its mistakes as comments.
    ("print-errors", test_print_errors),
    // `optimize PASS[,PASS]`: the kernel after these passes.
    ("optimize", test_optimize),
    // What the analyses know of each value of the normalised kernel.
    ("analyze", test_analyze),
    // `lower TARGET [warps=N] [stages=N]`: the optimised kernel, its schedule and Thread IR. Targets: `sm_80`, `sm_90`,
    // `opencl`, and `vulkan8`, `vulkan32` and so on by the lanes of a subgroup (1: none).
    ("lower", run_kernel::test_lower),
    // `run [grid=X[,Y[,Z]]] [simulate]`: the buffers after the interpreter ran the kernel; with `simulate` those that the
    // lowered kernel leaves, by the simulator, must be the same to the byte. Lines `; arg NAME = ...` give the arguments.
    ("run", run_kernel::test_run),
];

fn test_verify(case: &Case) -> Result<Outcome, String> {
    valid(case).map(|_| Outcome::Pass)
}

fn test_parse(case: &Case) -> Result<Outcome, String> {
    let func = parsed(case)?;
    let text = func.to_string();
    let again = parse(&text).map_err(|e| format!("what was printed is not parsed:\n{text}\n{e}"))?;
    if again.to_string() != text {
        return Err(format!("printing is not stable:\n{text}\n{again}"));
    }
    Ok(Outcome::Text(text))
}

fn test_parse_error(case: &Case) -> Result<Outcome, String> {
    match parse(case.text) {
        Ok(_) => Err("the text is parsed, but a mistake was expected".into()),
        Err(e) => Ok(Outcome::Text(e.to_string())),
    }
}

fn test_verify_error(case: &Case) -> Result<Outcome, String> {
    let func = parsed(case)?;
    let kernel = case.text.lines().position(|l| l.starts_with("kernel")).map_or(0, |i| i as u32 + 1);
    let violations = verify::violations(&func);
    if violations.is_empty() {
        return Err("the kernel is valid, but a mistake was expected".into());
    }
    let line = |v: &verify::Violation| if v.loc.is_known() { v.loc.line } else { kernel };
    Ok(Outcome::Errors(violations.iter().map(|v| (line(v), v.message.clone())).collect()))
}

fn test_print_errors(case: &Case) -> Result<Outcome, String> {
    let func = parsed(case)?;
    Ok(Outcome::Text(print_errors(&func, &verify::violations(&func))))
}

fn test_optimize(case: &Case) -> Result<Outcome, String> {
    let mut func = valid(case)?;
    for name in case.arguments.split(',').map(str::trim) {
        let pass = passes::by_name(name).ok_or_else(|| format!("there is no pass `{name}`"))?;
        pass(&mut func);
        verify(&func, name).map_err(|e| format!("{e}\n{func}"))?;
    }
    // Normalised, so that the numbers of values do not depend on how many the passes made and dropped.
    let text = func.to_string();
    parse(&text).map(|f| Outcome::Text(f.to_string())).map_err(|e| format!("{e}\n{text}"))
}

fn test_analyze(case: &Case) -> Result<Outcome, String> {
    valid(case)?;
    let normalised = parsed(case)?.to_string();
    let func = parse(&normalised).map_err(|e| e.to_string())?;
    Ok(Outcome::Text(format!("{func}{}", analysis::describe(&func))))
}

fn parsed(case: &Case) -> Result<Function, String> {
    parse(case.text).map_err(|e| e.to_string())
}

fn valid(case: &Case) -> Result<Function, String> {
    let func = parsed(case)?;
    verify(&func, "parse").map_err(|e| e.to_string())?;
    Ok(func)
}

// ---- the runner -------------------------------------------------------------------------------------------------

const EXPECTED: &str = "; expected:";
const ERROR: &str = "; error:";

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let wanted = std::env::var("TILEWRIGHT_FILETESTS").unwrap_or_default();
    let bless = std::env::var("TILEWRIGHT_BLESS").is_ok_and(|v| v == "1");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "there are filetests");

    let mut failures = String::new();
    let mut failed = 0;
    for path in &files {
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        if !name.contains(&wanted) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a filetest can be read");
        let outcome = run_with(commands(path).unwrap_or(COMMANDS), &text).and_then(|blessed| {
            if blessed == text {
                Ok(())
            } else if bless {
                std::fs::write(path, &blessed).map_err(|e| e.to_string())
            } else {
                Err(difference(&text, &blessed))
            }
        });
        if let Err(why) = outcome {
            failed += 1;
            write!(failures, "\n== {name}\n{why}\n").expect("writing to a string never fails");
        }
    }
    assert!(failures.is_empty(), "{failed} filetests failed (TILEWRIGHT_BLESS=1 accepts the new output){failures}");
}

/// The commands of a file, by the ending of its name.
fn commands(path: &Path) -> Option<&'static [(&'static str, Command)]> {
    match path.extension()?.to_str()? {
        "tile" => Some(COMMANDS),
        "thread" => Some(run_thread::COMMANDS),
        _ => None,
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of filetests can be read") {
        let path = entry.expect("an entry of the folder can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if commands(&path).is_some() {
            files.push(path);
        }
    }
}

/// Runs the commands of a `.tile` file; gives the file as it should be.
fn run(text: &str) -> Result<String, String> {
    run_with(COMMANDS, text)
}

fn run_with(commands_by_name: &[(&str, Command)], text: &str) -> Result<String, String> {
    let body = text.find(&format!("\n{EXPECTED}")).map_or(text, |at| &text[..=at]);
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let mut blocks = String::new();
    let mut commands = 0;
    for line in text.lines() {
        let Some(command) = line.strip_prefix("; test ") else {
            break;
        };
        commands += 1;
        let (name, arguments) = command.trim().split_once(' ').unwrap_or((command.trim(), ""));
        let run = commands_by_name.iter().find(|(n, _)| *n == name).map(|(_, run)| run);
        let run = run.ok_or_else(|| format!("there is no command `{name}`"))?;
        match run(&Case { text: body.trim_end(), arguments })? {
            Outcome::Pass => {}
            Outcome::Text(output) => {
                blocks.push_str(EXPECTED);
                blocks.push('\n');
                for line in output.lines() {
                    blocks.push_str(format!("; {line}").trim_end());
                    blocks.push('\n');
                }
            }
            Outcome::Errors(errors) => remark(&mut lines, errors),
        }
    }
    if commands == 0 {
        return Err("the file does not begin with a line `; test COMMAND`".into());
    }
    let mut out = lines.join("\n") + "\n";
    if !blocks.is_empty() {
        out = out.trim_end().to_owned() + "\n\n" + &blocks;
    }
    Ok(out)
}

/// Puts errors in as remarks. A remark that is there already stays if its text is part of the message.
fn remark(lines: &mut Vec<String>, mut errors: Vec<(u32, String)>) {
    let mut out: Vec<String> = Vec::new();
    let mut current = 0;
    let mut take = |line: u32, remark: &str| {
        let at = errors.iter().position(|(l, message)| *l == line && !remark.is_empty() && message.contains(remark));
        at.map(|at| errors.remove(at)).is_some()
    };
    // First what is right already; a line of code takes its further remarks from the lines below it.
    let mut owner = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let (code, remark) = match line.split_once(ERROR) {
            Some((code, remark)) => (code, Some(remark.trim())),
            None => (&line[..], None),
        };
        if !code.trim().is_empty() || remark.is_none() {
            current = i as u32 + 1;
        }
        let kept = remark.is_none_or(|r| take(current, r));
        if kept {
            out.push(line.clone());
            owner.push(current);
        } else if !code.trim().is_empty() {
            out.push(code.trim_end().to_owned());
            owner.push(current);
        }
    }
    // Then what is missing, in lines of its own or at the end of the line.
    for (line, message) in errors {
        let at = owner.iter().rposition(|&o| o == line).unwrap_or(out.len() - 1);
        let message = message.lines().next().unwrap_or_default();
        if out[at].contains(ERROR) {
            let indent: String = out[at].chars().take_while(|c| *c == ' ').collect();
            out.insert(at + 1, format!("{indent}{ERROR} {message}"));
            owner.insert(at + 1, line);
        } else {
            out[at] = format!("{} {ERROR} {message}", out[at]);
        }
    }
    *lines = out;
}

/// The first lines that differ.
fn difference(found: &str, expected: &str) -> String {
    let mut out = String::from("the file (-) is not what it should be (+)\n");
    let (a, b): (Vec<_>, Vec<_>) = (found.lines().collect(), expected.lines().collect());
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = a[same..].iter().rev().zip(b[same..].iter().rev()).take_while(|(x, y)| x == y).count();
    let parts = [('-', &a[same..a.len() - tail]), ('+', &b[same..b.len() - tail])];
    for (sign, lines) in parts {
        for line in lines {
            writeln!(out, "{sign} {line}").expect("writing to a string never fails");
        }
    }
    out
}

// ---- tests of the runner itself ---------------------------------------------------------------------------------

#[test]
fn output_is_compared_and_blessed() {
    let kernel = "; test parse\nkernel @f() { yield }\n";
    let blessed = run(kernel).expect("the text is right");
    assert_eq!(blessed, format!("{kernel}\n; expected:\n; kernel @f() {{\n;   yield\n; }}\n"));
    assert_eq!(run(&blessed).as_ref(), Ok(&blessed), "what is blessed passes");
    assert_eq!(run(&blessed.replace("; }", "; )")).as_ref(), Ok(&blessed), "other output is noticed");
}

#[test]
fn errors_are_compared_and_blessed() {
    let kernel = "; test verify-error\nkernel @f() {\n  v0: i32 = program_id 3\n  yield\n}\n";
    let remark = "axis 3 of the grid; a grid has axes 0, 1 and 2";
    let blessed = run(kernel).expect("the text is right");
    assert_eq!(blessed, kernel.replace("program_id 3", &format!("program_id 3 ; error: {remark}")));
    assert_eq!(run(&blessed).as_ref(), Ok(&blessed), "what is blessed passes");
    let shorter = blessed.replace(remark, "a grid has axes");
    assert_eq!(run(&shorter).as_ref(), Ok(&shorter), "a part of the message will do");
    let below = kernel.replace("program_id 3", "program_id 3\n  ; error: a grid has axes");
    assert_eq!(run(&below).as_ref(), Ok(&below), "a remark may stand in a line of its own");
    let wrong = blessed.replace(remark, "something else");
    assert_eq!(run(&wrong).as_ref(), Ok(&blessed), "a wrong remark is replaced");
    let superfluous = blessed.replace("  yield", "  yield ; error: nothing");
    assert_eq!(run(&superfluous).as_ref(), Ok(&blessed), "a remark without mistake is removed");
    let twice = blessed.replace(remark, &format!("{remark}\n  ; error: {remark}"));
    assert_eq!(run(&twice).as_ref(), Ok(&blessed), "each remark is for a mistake of its own");
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let kernel = "kernel @f() { yield }\n";
    assert!(run(kernel).is_err_and(|e| e.contains("does not begin with a line")));
    assert!(run(&format!("; test nothing\n{kernel}")).is_err_and(|e| e.contains("no command `nothing`")));
    assert!(run(&format!("; test verify-error\n{kernel}")).is_err_and(|e| e.contains("the kernel is valid")));
    assert!(run(&format!("; test parse-error\n{kernel}")).is_err_and(|e| e.contains("the text is parsed")));
    assert!(run(&format!("; test optimize none\n{kernel}")).is_err_and(|e| e.contains("no pass `none`")));
    assert!(run("; test verify\nkernel @f() { }\n").is_err_and(|e| e.contains("must end in `yield`")));
}

#[test]
fn every_op_has_a_case() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/parse"), &mut files);
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).expect("a filetest can be read")).collect();
    let words: std::collections::HashSet<&str> = text.split_whitespace().collect();
    let missing: Vec<_> = every_op().iter().map(|op| op.mnemonic()).filter(|m| !words.contains(&m[..])).collect();
    assert!(missing.is_empty(), "no case in tests/filetests/parse for {missing:?}");
}

#[test]
fn every_thread_op_has_a_case() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/thread/parse"), &mut files);
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).expect("a filetest can be read")).collect();
    let words: std::collections::HashSet<&str> = text.split_whitespace().collect();
    // A name may have attributes after it.
    let is =
        |word: &str, name: &str| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let ops = tilewright_compiler::thread::table::every_op();
    let missing: Vec<_> =
        ops.iter().map(|op| op.info().name).filter(|name| !words.iter().any(|word| is(word, name))).collect();
    assert!(missing.is_empty(), "no case in tests/filetests/thread/parse for {missing:?}");
}
