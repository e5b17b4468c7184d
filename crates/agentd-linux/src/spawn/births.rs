//! Births that go on by themselves, for whoever has other work meanwhile.
//!
//! Whoever gives birth on lent memory stands still until the child's exec (vfork(2)): half of the time that a process
//! costs. While a thousand services start, that is time in which the next one's cgroup can be made. So a birth can be
//! *begun* here: the child goes its way on our memory, on a stack and with papers of its own, and the kernel tells when it
//! has left (CLONE_CHILD_CLEARTID, clone(2)).
//!
//! # Invariants
//!
//! - There is one answer to each birth that was begun, in the order in which they were begun.
//! - What a child uses stays until it has left: its papers and the stack with its birth.
//! - What a child needs of our descriptors is its own when its birth was begun: whatever becomes of ours.
//! - **Whoever reaps, or asks whose a process is, has taken all answers before.** A child that runs is known to nobody
//!   until its answer is taken.

use std::collections::VecDeque;

use super::begun::Begun;
use super::clone::Stack;
use super::{Child, SpawnError, SpawnPlan, Spawner, Step};

/// So many may be under way: few enough that their memory does not show.
const MOST: usize = 16;

/// So many are left when answers are taken to begin others: enough that no processor waits for the next one.
const LEAST: usize = 4;

/// Makes processes, at once or alongside. `T` is what the caller needs when the answer comes.
#[derive(Debug)]
pub struct Births<T> {
    /// The answers that nobody has taken yet; they are older than all that is under way.
    settled: VecDeque<(T, Result<Child, SpawnError>)>,
    /// Dropped before the spawner, whose slots the children may still have to copy.
    under_way: VecDeque<UnderWay<T>>,
    spawner: Spawner,
    /// Those that no child uses.
    stacks: Vec<Stack>,
}

/// A birth that was begun.
#[derive(Debug)]
struct UnderWay<T> {
    what: T,
    begun: Begun,
    /// Dropped after the birth: the child has left by then.
    stack: Stack,
}

impl<T> Births<T> {
    /// Births by this spawner.
    #[must_use]
    pub fn new(spawner: Spawner) -> Self {
        Self { settled: VecDeque::new(), under_way: VecDeque::new(), spawner, stacks: Vec::new() }
    }

    /// See [`Spawner::may_raise`].
    #[must_use]
    pub fn may_raise(&self) -> bool {
        self.spawner.may_raise()
    }

    /// See [`Spawner::ids`].
    #[must_use]
    pub fn ids(&self) -> [u32; 2] {
        self.spawner.ids()
    }

    /// Makes the process and comes back when it runs its program.
    ///
    /// # Errors
    /// As [`Spawner::spawn`].
    pub fn spawn(&mut self, plan: &SpawnPlan<'_>) -> Result<Child, SpawnError> {
        self.spawner.spawn(plan)
    }

    /// Whether births can be begun here: on kernels that give the child a table of descriptors of its own.
    #[must_use]
    pub fn go_alongside(&self) -> bool {
        self.spawner.has_own_tables()
    }

    /// Whether there is an answer to be taken, now or soon.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        !self.under_way.is_empty() || !self.settled.is_empty()
    }

    /// How many answers must be taken before the next birth is begun. Where there are too many births under way, that is
    /// waited for here until most are done: to wake up for each would cost as much as it gains.
    #[must_use]
    pub fn due(&mut self) -> usize {
        if self.under_way.len() >= MOST {
            let due = self.under_way.len() - LEAST;
            // By the time that the last of them has left, the others have, mostly.
            if let Some(last) = self.under_way.get(due - 1) {
                last.begun.wait();
            }
            for _ in 0..due {
                self.settle_first();
            }
        }
        self.settled.len()
    }

    /// Begins a birth; [`Births::answer`] has what became of it. One that cannot go on by itself is done when this comes
    /// back.
    ///
    /// # Errors
    /// As [`Spawner::spawn`]. Nothing was begun then.
    pub fn begin(&mut self, plan: SpawnPlan<'_>, what: T) -> Result<(), SpawnError> {
        if Spawner::must_wait(&plan) {
            while self.settle_first() {}
            let child = self.spawner.spawn(&plan)?;
            self.settled.push_back((what, Ok(child)));
            return Ok(());
        }
        while !self.spawner.has_slots_for(&plan) && self.settle_first() {}
        let stack = match self.stacks.pop() {
            Some(stack) => stack,
            None => Stack::new().map_err(|error| SpawnError::new(&plan, Step::Fork, error))?,
        };
        // SAFETY: the stack lies beside the birth, and is used again once that is settled.
        let begun = unsafe { Begun::new(&mut self.spawner, plan, &stack) }?;
        self.under_way.push_back(UnderWay { what, begun, stack });
        Ok(())
    }

    /// The answer to the birth that was begun first; waits for it. None: nothing is under way.
    pub fn answer(&mut self) -> Option<(T, Result<Child, SpawnError>)> {
        if self.settled.is_empty() {
            self.settle_first();
        }
        self.settled.pop_front()
    }

    /// Waits for the oldest birth that is under way; false if there is none.
    fn settle_first(&mut self) -> bool {
        let Some(UnderWay { what, begun, stack }) = self.under_way.pop_front() else { return false };
        self.settled.push_back((what, begun.settle(&mut self.spawner)));
        self.stacks.push(stack);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Read};
    use std::os::fd::{AsFd, OwnedFd};

    use super::super::{Identity, Program, Stdio};
    use super::*;
    use crate::reap::Exit;

    fn shell(script: &std::ffi::CStr) -> SpawnPlan<'static> {
        let argv = vec![c"sh".to_owned(), c"-c".to_owned(), script.to_owned()];
        SpawnPlan::new(Program::Path(c"/bin/sh".to_owned()), argv)
    }

    fn births<T>() -> Births<T> {
        Births::new(Spawner::new().unwrap())
    }

    #[test]
    fn answers_come_in_the_order_of_the_births_and_failures_leave_no_process() {
        let mut births = births();
        assert!(births.answer().is_none());
        for number in 0..MOST {
            assert_eq!(births.due(), 0);
            let missing = SpawnPlan::new(Program::Path(c"/nowhere".to_owned()), vec![c"nowhere".to_owned()]);
            let plan = if number % 2 == 0 { shell(c"exit 7") } else { missing };
            births.begin(plan, number).unwrap();
        }
        assert_eq!(births.due(), MOST - LEAST);
        for number in 0..MOST {
            let (what, answer) = births.answer().unwrap();
            assert_eq!((what, answer.is_ok()), (number, number % 2 == 0));
            match answer {
                Ok(child) => assert_eq!(child.pidfd.reap().unwrap(), Exit::Exited(7)),
                Err(error) => assert_eq!(error.step, Step::Exec, "{error}"),
            }
        }
        assert!(!births.is_under_way() && births.answer().is_none());
        // Afterwards as before, at once.
        births.spawn(&shell(c"exit 0")).unwrap().pidfd.reap().unwrap();
    }

    #[test]
    fn a_birth_that_was_begun_has_its_descriptors_whatever_becomes_of_the_callers() {
        let mut births = births();
        for round in 0..50 {
            let (mut reader, writer) = io::pipe().unwrap();
            let mut plan = shell(c"echo told");
            plan.stdio[1] = Stdio::Fd(writer.as_fd());
            births.begin(plan, round).unwrap();
            drop(writer);
            // Another descriptor takes the number meanwhile.
            let others: Vec<_> = (0..8).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
            let (_, child) = births.answer().unwrap();
            let mut said = String::new();
            // The end comes, so nobody else has kept the pipe.
            reader.read_to_string(&mut said).unwrap();
            assert_eq!(said, "told\n");
            child.unwrap().pidfd.reap().unwrap();
            drop(others);
        }
    }

    /// A plan whose program says what the script says into a pipe.
    fn speaker<'a>(script: &std::ffi::CStr, writer: &'a io::PipeWriter) -> SpawnPlan<'a> {
        let mut plan = shell(script);
        plan.stdio[1] = Stdio::Fd(writer.as_fd());
        plan
    }

    /// What the processes of all births have written, each born with one of the plans that `plan` makes.
    fn said(count: usize, mut plan: impl FnMut(usize, &io::PipeWriter, &mut Births<usize>)) -> String {
        let mut births = births();
        let (mut reader, writer) = io::pipe().unwrap();
        for number in 0..count {
            plan(number, &writer, &mut births);
        }
        drop(writer);
        let mut numbers = 0..count;
        while let Some((number, child)) = births.answer() {
            assert_eq!(Some(number), numbers.next());
            assert_eq!(child.unwrap().pidfd.reap().unwrap(), Exit::Exited(0), "{number}");
        }
        assert_eq!(numbers.next(), None);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn there_may_be_more_descriptors_than_slots_in_one_birth_and_in_all() {
        for each in [0, 5, 31, 40] {
            let said = said(12, |number, writer, births| {
                let file = || -> OwnedFd { fs::File::open("/proc/self/cmdline").unwrap().into() };
                let files: Vec<OwnedFd> = (0..each).map(|_| file()).collect();
                let mut plan = speaker(c"ls /proc/self/fd | wc -l", writer);
                plan.fds = files.iter().map(AsFd::as_fd).collect();
                births.begin(plan, number).unwrap();
            });
            // The three first ones, what is handed over, and the folder that is listed.
            assert_eq!(said, format!("{}\n", each + 4).repeat(12));
        }
    }

    #[test]
    fn an_oom_score_is_that_of_its_process_alone() {
        let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
        let said = said(12, |number, writer, births| {
            let mut plan = speaker(c"cat /proc/self/oom_score_adj", writer);
            plan.oom_score_adjust = (number % 3 == 1).then_some(900);
            births.begin(plan, number).unwrap();
        });
        assert_eq!(fs::read_to_string("/proc/self/oom_score_adj").unwrap(), own);
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<&str> = [[own.trim(); 8].as_slice(), &["900"; 4]].concat();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    }

    #[test]
    fn those_of_other_users_go_alongside_as_well() {
        let root = nix::unistd::geteuid().is_root();
        let said = said(12, |number, writer, births| {
            let mut plan = speaker(c"id -u", writer);
            if root && number % 2 == 0 {
                plan.identity = Some(Identity { uid: 65534, gid: 65534, groups: Vec::new() });
            }
            births.begin(plan, number).unwrap();
        });
        let others = said.lines().filter(|line| *line == "65534").count();
        assert_eq!(said.lines().count(), 12);
        assert!(!root || others == 6, "{said}");
    }

    #[test]
    fn who_goes_leaves_no_child_behind_on_its_memory() {
        for _ in 0..50 {
            let mut births = births();
            for number in 0..MOST {
                births.begin(shell(c"exit 0"), number).unwrap();
            }
            // Their papers and stacks are gone afterwards: a child that still used them would end with a signal.
            drop(births);
        }
        for _ in 0..50 * MOST {
            let status = nix::sys::wait::wait().unwrap();
            assert!(matches!(status, nix::sys::wait::WaitStatus::Exited(_, 0)), "{status:?}");
        }
    }
}
