//! What a round of a pipelined loop does, and when: copies, products, and waiting for both.
//!
//! Round `i` waits for the copies of its own stage, starts those of a later round into the buffer that round `i - 1` has read, and
//! computes. Products of four warps (`wgmma`) whose sums nothing else in the loop looks at, or only after another product, stay
//! in flight until the next round has started its own: then the copies are one round less ahead. In large programs a product
//! whose operands come from copies ahead is issued before the one that stays in flight, a round ahead of its use; then
//! a round waits for copies, and starts them, in its middle.

use super::plan::Planner;
use super::{DotPlan, PipelinePlan};
use crate::tile::{Op, OpId, Region, Value};
use std::collections::HashMap;
use std::fmt;

/// Sums of the two products that a thread holds at least when one is issued a round ahead of its use. With fewer, two programs
/// share a processor and each works while the other waits; a product ahead takes the registers that this needs.
const SUMS_AHEAD: usize = 96;

/// When in a round something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// Before all else.
    Begin,
    /// Before this op, when its other operands are there.
    Before(OpId),
    /// When the operands of this product are there, before it is issued.
    Issue(OpId),
    /// When this product is issued.
    After(OpId),
    /// After the last op.
    End,
    /// When the values of the next round are taken.
    Next,
}

/// What is done then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Waits until at most so many groups of copies are pending; what the others brought is there for all threads.
    WaitForCopies(u32),
    /// Starts the copies of the round that is [`PipelinePlan::distance`] ahead.
    StartCopies,
    /// Issues this product of the next round.
    IssueAhead(OpId),
    /// Waits until at most so many products are in flight; with the sums of these products, which are finished then, beside those of
    /// the product whose moment it is.
    Finish {
        /// What is finished then.
        products: Vec<OpId>,
        /// How many may still be in flight.
        pending: u8,
    },
}

/// A product that stays in flight from one round to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// It.
    pub product: OpId,
    /// The carried value that is its sum.
    pub carried: usize,
}

impl PipelinePlan {
    /// What is done at a moment, in order.
    pub fn at(&self, moment: Moment) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |(m, _)| *m == moment).map(|(_, step)| step)
    }

    /// The product that is issued a round ahead of its use, if one is.
    pub fn issued_ahead(&self) -> Option<OpId> {
        self.steps.iter().find_map(|(_, step)| if let Step::IssueAhead(op) = step { Some(*op) } else { None })
    }
}

/// What there is to decide about: the products of a loop that may stay in flight.
#[derive(Default)]
struct Candidates {
    products: Vec<InFlight>,
    /// The first product that may not, and where in the loop it is: those are waited for together with it.
    other: Option<(OpId, usize)>,
    /// Of each that may: the op that first looks at the sum of the round before.
    first_uses: Vec<OpId>,
}

impl Planner<'_> {
    /// Decides about the rounds of a loop whose loads are known.
    pub(super) fn plan_rounds(&self, body: Region, plan: &mut PipelinePlan) {
        let found = if plan.stages > 2 { self.may_stay_in_flight(body, plan) } else { Candidates::default() };
        let ahead = self.may_be_issued_ahead(body, plan, &found);
        plan.distance = plan.stages - 1 - u32::from(!found.products.is_empty() && ahead.is_none());
        let products: Vec<OpId> = found.products.iter().map(|p| p.product).collect();
        let finish = |products: Vec<OpId>, pending: usize| Step::Finish { products, pending: pending as u8 };
        let count = products.len();
        let begin = [(Moment::Begin, Step::WaitForCopies(plan.distance - 1)), (Moment::Begin, Step::StartCopies)];
        plan.steps = match (ahead, found.other) {
            (Some(op), _) => vec![
                (Moment::Before(found.first_uses[0]), finish(products.clone(), 0)),
                (Moment::Issue(products[0]), Step::WaitForCopies(plan.stages - 3)),
                (Moment::Issue(products[0]), Step::IssueAhead(op)),
                (Moment::Next, Step::StartCopies),
                // The product after it stays in flight.
                (Moment::Next, finish(vec![op], 1)),
            ],
            (None, Some((other, _))) if count > 0 => {
                begin.into_iter().chain([(Moment::After(other), finish(products, 0))]).collect()
            }
            (None, None) if count > 0 => begin.into_iter().chain([(Moment::End, finish(vec![], count))]).collect(),
            _ => begin.into(),
        };
        plan.in_flight = found.products;
    }

    /// The products of four warps that may stay in flight from one round to the next: operands come from copies ahead or from
    /// registers, and the sum is a carried value of which the loop makes no other use, or none before a product that is waited for.
    fn may_stay_in_flight(&self, body: Region, plan: &PipelinePlan) -> Candidates {
        let func = self.func;
        let next = &func.ops[func.terminator(body)].operands;
        let (params, ops) = (&func.regions[body].params, &func.regions[body].ops);
        // For each value, where in the loop its uses are.
        let mut uses: HashMap<Value, Vec<usize>> = HashMap::new();
        for (at, &op) in ops.iter().enumerate() {
            let mut note = |op: OpId| func.ops[op].operands.iter().for_each(|&v| uses.entry(v).or_default().push(at));
            note(op);
            func.ops[op].regions.iter().for_each(|&r| func.walk(r, &mut note));
        }
        let uses = |v: Value| uses.get(&v).map_or(&[][..], |at| at);
        let mut found = Candidates::default();
        for (at, &op) in ops.iter().enumerate() {
            let Some(DotPlan::Wgmma(dot)) = self.schedule.dots.get(&op) else { continue };
            let data = &func.ops[op];
            let sum = next.iter().position(|&v| v == data.results[0]).filter(|&i| {
                let ahead = |&x: &Value| self.is_copied(plan, x);
                uses(data.results[0]).len() == 1
                    && self.home(params[1 + i]) == Some(&dot.acc)
                    && data.operands[usize::from(dot.a_in_registers)..2].iter().all(ahead)
            });
            match (sum, found.other) {
                (Some(carried), _) => found.products.push(InFlight { product: op, carried }),
                (None, None) => found.other = Some((op, at)),
                (None, Some(_)) => {}
            }
        }
        found.products.retain(|p| match found.other {
            Some((_, at)) => uses(params[1 + p.carried]).iter().all(|&use_at| use_at > at),
            None => func.ops[p.product].operands[2] == params[1 + p.carried] && uses(params[1 + p.carried]).len() == 1,
        });
        let first_use = |p: &InFlight| uses(params[1 + p.carried]).iter().min().map(|&at| ops[at]);
        found.first_uses = found.products.iter().filter_map(first_use).collect();
        found
    }

    /// The product that may be issued one round ahead, before the one that stays in flight: operands come from copies ahead or
    /// from outside the loop, nothing is added to it, and there is no other.
    fn may_be_issued_ahead(&self, body: Region, plan: &PipelinePlan, found: &Candidates) -> Option<OpId> {
        let func = self.func;
        let (first, at) = found.other?;
        let [InFlight { product: last, .. }] = found.products[..] else { return None };
        let sums = |op: OpId| self.schedule.dots[&op].acc().registers();
        if sums(first) + sums(last) < SUMS_AHEAD {
            return None;
        }
        let ops = &func.regions[body].ops;
        let place = |op: OpId| ops.iter().position(|&o| o == op);
        let mut products = 0;
        func.walk(body, &mut |op| products += usize::from(matches!(func.ops[op].op, Op::Dot { .. })));
        let data = &func.ops[first];
        // What the loop does not change is written to shared memory once, before it.
        let outside =
            |x: Value| func.def_op(x).is_none_or(|op| !ops.contains(&op)) && !func.regions[body].params.contains(&x);
        let in_registers = matches!(&self.schedule.dots[&first], DotPlan::Wgmma(dot) if dot.a_in_registers);
        let from_shared = !in_registers && data.operands[..2].iter().all(|&x| outside(x) || self.is_copied(plan, x));
        let zero = func.const_of(data.operands[2]).is_some_and(|c| c.0 == 0);
        let in_order = place(last) > Some(at) && place(*found.first_uses.first()?) <= place(last);
        (products == 2 && from_shared && zero && in_order).then_some(first)
    }

    /// Is `x` a load of the loop that is copied ahead, or the same seen as another matrix?
    fn is_copied(&self, plan: &PipelinePlan, mut x: Value) -> bool {
        let func = self.func;
        while let Some(op) = func.def_op(x) {
            match &func.ops[op].op {
                Op::Permute(_) | Op::Reshape => x = func.ops[op].operands[0],
                _ => return plan.loads.contains(&op),
            }
        }
        false
    }
}

impl fmt::Display for PipelinePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ops: &[OpId]| ops.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "keeps {} stages of {}, copied {} rounds ahead", self.stages, list(&self.loads), self.distance)?;
        for p in &self.in_flight {
            write!(f, "; {} stays in flight", p.product)?;
        }
        for (moment, step) in &self.steps {
            match moment {
                Moment::Begin => write!(f, "\n  begin: ")?,
                Moment::Before(op) => write!(f, "\n  before {op}: ")?,
                Moment::Issue(op) => write!(f, "\n  issue {op}: ")?,
                Moment::After(op) => write!(f, "\n  after {op}: ")?,
                Moment::End => write!(f, "\n  end: ")?,
                Moment::Next => write!(f, "\n  next: ")?,
            }
            match step {
                Step::WaitForCopies(n) => write!(f, "wait for copies, {n} pending")?,
                Step::StartCopies => write!(f, "start copies")?,
                Step::IssueAhead(op) => write!(f, "issue {op} of the next round")?,
                Step::Finish { products, pending } if products.is_empty() => {
                    write!(f, "finish products, {pending} pending")?
                }
                Step::Finish { products, pending } => write!(f, "finish {}, {pending} pending", list(products))?,
            }
        }
        Ok(())
    }
}
