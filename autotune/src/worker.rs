//! Configurations in a process of their own: what hangs is ended, what crashes takes nothing with it.
//!
//! The worker is this very program started again; it finds the kernel by name in the registry and makes inputs as the
//! command does. Requests and answers are lines of JSON over the standard streams, each after a mark, so that whatever else
//! the program prints does no harm. After a failure that may have spoiled the process, the next request starts a fresh one.

use crate::bench::{Bench, COLD, Facts, Local, PATIENCE};
use crate::config::Config;
use crate::failure::{Failure, FailureKind};
use crate::key::Dims;
use crate::measure::CachePolicy;
use crate::registry;
use crate::tunable::{Problem, Tunable};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tilewright_runtime::Device;

/// What a line of the protocol begins with.
const MARK: &str = "@tilewright-autotune ";

/// What the worker is to work on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The kernel's name.
    pub kernel: String,
    /// The device's name.
    pub device: String,
    /// The element type.
    pub dtype: String,
    /// The sizes.
    pub dims: Vec<i64>,
    /// For inputs.
    pub seed: u64,
    /// What launches find in the cache.
    pub policy: CachePolicy,
    /// Any configuration that the kernel accepts.
    pub first: Config,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Open(Task),
    Compile(Vec<Config>),
    Reference(Config),
    Check(Config),
    Sample(Config, usize),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Opened(CachePolicy),
    Done,
    Compiled(Vec<Result<Facts, Failure>>),
    Times(Vec<f64>),
    Failed(Failure),
    /// The device is lost; the process is of no more use.
    Lost(Failure),
}

/// The limit on launches in a worker: whoever started it keeps the time.
const NEVER: Duration = Duration::MAX;

/// Can this program be started as a worker?
static SERVES: AtomicBool = AtomicBool::new(false);

/// Makes a program one that the tuner can start as a worker: call it first in `main`. In a process that was started as a worker it
/// serves, and ends the process; else it returns at once. The command does this for you.
pub fn serve_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|a| a == WORKER_ARGUMENT) {
        // If the other side is gone there is nobody to tell.
        let served = serve(io::stdin(), io::stdout());
        std::process::exit(i32::from(served.is_err()));
    }
    SERVES.store(true, Relaxed);
}

/// Can this program be started as a worker for this very kernel?
pub(crate) fn serves(tunable: &Tunable) -> bool {
    SERVES.load(Relaxed) && registry::find(tunable.name()).is_ok_and(|t| std::ptr::eq(t, tunable))
}

/// Serves requests from `input` until it ends.
///
/// # Errors
/// If the other side is gone.
pub fn serve(input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    die_with_parent();
    let requests = listen(input);
    let next = || -> io::Result<Option<Request>> {
        match requests.recv() {
            Ok(json) => serde_json::from_str(&json).map(Some).map_err(io::Error::from),
            // The input has ended.
            Err(_) => Ok(None),
        }
    };
    let mut answer = |a: &Answer| -> io::Result<()> {
        writeln!(output, "\n{MARK}{}", serde_json::to_string(a)?)?;
        output.flush()
    };
    let Some(Request::Open(task)) = next()? else { return Ok(()) };
    let (problem, tunable) = match problem(&task) {
        Ok(found) => found,
        Err(message) => return answer(&Answer::Failed(Failure::new(FailureKind::Launch, message))),
    };
    let instance = match tunable.instantiate(&problem) {
        Ok(instance) => instance,
        Err(e) => return answer(&Answer::Failed(Failure::of(&e))),
    };
    let source = |c: &Config| instance.launch(c);
    let mut bench = match Local::new(&source, &task.first, task.policy, tunable.set_tolerance(), NEVER) {
        Ok(bench) => bench,
        Err(e) => return answer(&Answer::Failed(Failure::of(&e))),
    };
    answer(&Answer::Opened(bench.policy()))?;
    while let Some(request) = next()? {
        let result = match request {
            Request::Open(_) => Err(Failure::new(FailureKind::Launch, "the worker is open already")),
            Request::Compile(configs) => Ok(Answer::Compiled(bench.compile(&configs))),
            Request::Reference(config) => bench.reference(&config).map(|()| Answer::Done),
            Request::Check(config) => bench.check(&config).map(|()| Answer::Done),
            Request::Sample(config, runs) => bench.sample(&config, runs).map(Answer::Times),
        };
        match result {
            Ok(a) => answer(&a)?,
            Err(failure) if bench.usable() => answer(&Answer::Failed(failure))?,
            Err(failure) => {
                answer(&Answer::Lost(failure))?;
                // Dropping things of a lost device may hang in the driver.
                std::process::exit(1);
            }
        }
    }
    Ok(())
}

/// How long a worker whose other side is gone may go on with what it is at.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The requests of the input. When it ends, whoever asked is gone: the process ends soon after, whatever it hangs in.
fn listen(input: impl Read + Send + 'static) -> Receiver<String> {
    let (send, requests) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(input).lines().map_while(Result::ok) {
            if let Some(json) = line.strip_prefix(MARK)
                && send.send(json.to_owned()).is_err()
            {
                return;
            }
        }
        drop(send);
        std::thread::sleep(LAST_WORDS);
        // Ending in order would wait for the driver, which may wait for a kernel that never ends.
        std::process::abort();
    });
    requests
}

/// Has the system end this process with the one that started it.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    {
        // Without it the end of the input is what ends the process.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

fn problem(task: &Task) -> Result<(Problem, &'static Tunable), String> {
    let tunable = registry::find(&task.kernel)?;
    let dims = Dims::new(tunable.dims(), &task.dims).ok_or("the sizes do not fit the kernel")?;
    let dtype = task.dtype.parse().map_err(|_| format!("no element type is called `{}`", task.dtype))?;
    let device = Device::open(&task.device).map_err(|e| e.to_string())?;
    Ok((Problem { device, dtype, dims, seed: task.seed }, tunable))
}

/// How a worker is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables to set.
    pub env: Vec<(OsString, OsString)>,
}

impl Program {
    /// This program with the argument on which [`serve_if_asked`] serves.
    ///
    /// # Errors
    /// If it does not call that, or the system does not tell the program's path.
    pub fn this() -> io::Result<Self> {
        if !SERVES.load(Relaxed) {
            let why = "this program does not call `tilewright::autotune::worker::serve_if_asked()` first in its `main`";
            return Err(io::Error::other(why));
        }
        Ok(Self { path: std::env::current_exe()?, args: vec![WORKER_ARGUMENT.into()], env: Vec::new() })
    }
}

/// The argument on which a program serves as a worker.
pub const WORKER_ARGUMENT: &str = "--autotune-worker";

struct Running {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Answer>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may hang in a kernel or a driver, so it is not asked.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs configurations in worker processes.
pub struct Remote {
    program: Program,
    task: Task,
    limit: Duration,
    running: Option<Running>,
    reference: Option<Config>,
    policy: CachePolicy,
    broken: Option<Failure>,
    until: Option<Instant>,
    late: bool,
    /// Configurations that have run in the process there is now: their drivers have compiled them.
    warm: HashSet<Config>,
    /// Processes started.
    pub started: usize,
}

impl Remote {
    /// A bench whose worker must answer within `limit`; compiling a batch may take longer in proportion.
    pub fn new(program: Program, task: Task, limit: Duration) -> Self {
        let policy = task.policy;
        Self {
            program,
            task,
            limit,
            running: None,
            reference: None,
            policy,
            broken: None,
            until: None,
            late: false,
            warm: HashSet::new(),
            started: 0,
        }
    }

    /// A worker that is ready, with the reference known to it. If there can be none, no configuration is to blame.
    fn start(&mut self) -> Result<(), Failure> {
        if self.running.is_some() {
            return Ok(());
        }
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        self.warm.clear();
        let started = self.start_fresh();
        if let Err(failure) = &started
            && !self.late
        {
            self.running = None;
            let message = format!("worker processes do not work: {}", failure.message);
            self.broken = Some(Failure::new(failure.kind, message));
        }
        started
    }

    fn start_fresh(&mut self) -> Result<(), Failure> {
        let fail =
            |what: &str, e: io::Error| Failure::new(FailureKind::Crash, format!("cannot {what} a worker process: {e}"));
        let mut command = Command::new(&self.program.path);
        // Ctrl-C on the terminal is for this process alone: a worker that it ended would look like one that crashed.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .args(&self.program.args)
            .envs(self.program.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| fail("start", e))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("talk to", io::Error::other("its streams are not piped")));
        };
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer = line.strip_prefix(MARK).and_then(|json| serde_json::from_str(json).ok());
                if answer.is_some_and(|a| send.send(a).is_err()) {
                    break;
                }
            }
        });
        self.started += 1;
        self.running = Some(Running { child, input, answers });
        // Opening includes making the inputs, which no candidate is to blame for.
        match self.exchange(&Request::Open(self.task.clone()), self.limit.max(Duration::from_secs(60)))? {
            Answer::Opened(policy) => self.policy = policy,
            other => return Err(self.unexpected(other)),
        }
        if let Some(reference) = self.reference.clone() {
            match self.exchange(&Request::Reference(reference), self.limit.saturating_add(COLD))? {
                Answer::Done => {}
                other => return Err(self.unexpected(other)),
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request, limit: Duration) -> Result<Answer, Failure> {
        self.start()?;
        self.exchange(request, limit)
    }

    fn exchange(&mut self, request: &Request, limit: Duration) -> Result<Answer, Failure> {
        let json = serde_json::to_string(request)
            .map_err(|e| Failure::new(FailureKind::Crash, format!("cannot write a request: {e}")))?;
        let running = self.running.as_mut().expect("a worker was started before it is asked");
        let left = self.until.map_or(Duration::MAX, |u| u.saturating_duration_since(Instant::now()));
        self.late = false;
        // A failed write shows as a missing answer.
        let _ = writeln!(running.input, "{MARK}{json}").and_then(|()| running.input.flush());
        let failure = match running.answers.recv_timeout(limit.min(left)) {
            Ok(Answer::Failed(failure)) => return Err(failure),
            Ok(Answer::Lost(failure)) => Failure::new(FailureKind::Crash, failure.message),
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                self.late = left < limit;
                // What the driver had for itself is not among what was given.
                let given = self.limit.min(limit);
                Failure::timeout(given, format!("it did not end within {:.1} s", given.as_secs_f64()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = match running.child.wait() {
                    Ok(status) => status.to_string(),
                    Err(e) => e.to_string(),
                };
                Failure::new(FailureKind::Crash, format!("it ended its process ({how})"))
            }
        };
        // What is left of the process cannot be trusted.
        self.running = None;
        Err(failure)
    }

    fn unexpected(&mut self, answer: Answer) -> Failure {
        self.running = None;
        Failure::new(FailureKind::Crash, format!("the worker answered {answer:?}"))
    }

    fn done(&mut self, request: &Request, limit: Duration) -> Result<(), Failure> {
        match self.asked_twice(request, limit)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks; if the process ends with it, once more in a fresh one. Twice is no accident: the first may have been a signal from
    /// outside, or memory that others took.
    fn asked_twice(&mut self, request: &Request, limit: Duration) -> Result<Answer, Failure> {
        match self.ask(request, limit) {
            Err(f) if f.kind == FailureKind::Crash && self.broken.is_none() && !self.late => {
                // What the driver compiles it compiles anew in the fresh process.
                self.ask(request, self.cold_limit().max(limit))
            }
            other => other,
        }
    }

    /// The limit where a driver may compile.
    fn cold_limit(&self) -> Duration {
        self.limit.saturating_add(COLD)
    }

    /// The limit of a configuration's launches, with time for the driver if it has not run in this process.
    fn limit_for(&self, config: &Config) -> Duration {
        if self.running.is_some() && self.warm.contains(config) { self.limit } else { self.cold_limit() }
    }
}

impl Bench for Remote {
    fn compile(&mut self, configs: &[Config]) -> Vec<Result<Facts, Failure>> {
        let limit = self.cold_limit().saturating_mul(u32::try_from(configs.len()).unwrap_or(u32::MAX));
        let asked = self.asked_twice(&Request::Compile(configs.to_vec()), limit);
        match asked {
            Ok(Answer::Compiled(all)) if all.len() == configs.len() => all,
            Ok(other) => {
                let failure = self.unexpected(other);
                configs.iter().map(|_| Err(failure.clone())).collect()
            }
            // One of several ended the process or hung: one by one tells which.
            Err(_) if configs.len() > 1 && self.broken.is_none() && !self.late => {
                configs.iter().flat_map(|c| self.compile(std::slice::from_ref(c))).collect()
            }
            Err(failure) => configs.iter().map(|_| Err(failure.clone())).collect(),
        }
    }

    fn reference(&mut self, config: &Config) -> Result<(), Failure> {
        self.reference = None;
        self.start()?;
        let start = Instant::now();
        self.done(&Request::Reference(config.clone()), self.cold_limit())?;
        self.warm.insert(config.clone());
        // It runs twice, and its results are copied.
        self.limit = self.limit.max(start.elapsed() * PATIENCE / 2);
        self.reference = Some(config.clone());
        Ok(())
    }

    fn check(&mut self, config: &Config) -> Result<(), Failure> {
        self.done(&Request::Check(config.clone()), self.limit_for(config))?;
        self.warm.insert(config.clone());
        Ok(())
    }

    fn sample(&mut self, config: &Config, runs: usize) -> Result<Vec<f64>, Failure> {
        // Each of the launches may take as long as one.
        let limit = self.limit_for(config).saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX));
        match self.asked_twice(&Request::Sample(config.clone(), runs), limit)? {
            Answer::Times(times) => {
                self.warm.insert(config.clone());
                Ok(times)
            }
            other => Err(self.unexpected(other)),
        }
    }

    fn usable(&self) -> bool {
        self.broken.is_none()
    }

    fn broken(&self) -> Option<&Failure> {
        self.broken.as_ref()
    }

    fn end_at(&mut self, until: Option<Instant>) {
        self.until = until;
        self.late = false;
    }

    fn out_of_time(&self) -> bool {
        self.late
    }

    fn policy(&self) -> CachePolicy {
        self.policy
    }
}
