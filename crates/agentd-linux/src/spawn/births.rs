//! Births on a thread of their own, for whoever has other work meanwhile.
//!
//! Whoever gives birth on shared memory stands still until the child's exec (vfork(2)): half of the time that a
//! process costs. While a thousand services start, that is time in which the next one's cgroup can be made. So
//! [`Births`] has one thread that does nothing else. It is made when it is needed first, and sleeps when it is not.
//!
//! Nothing of a process is bound to the thread that has made it: its parent is the whole program, which waits for it
//! and gets its signals; user, capabilities and limits are the same for all threads that have not changed them, and
//! this one changes none.
//!
//! # Invariants
//!
//! - There is one birth at a time, in the order in which they were begun, and one answer to each, in that order.
//! - A plan that was begun owns its descriptors: whatever becomes of the ones it was made from, the child gets these.
//! - **Whoever reaps, or asks whose a process is, has taken all answers before.** A child that runs is known to nobody
//!   until its answer is taken.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::plan::OwnedPlan;
use super::{Child, SpawnError, SpawnPlan, Spawner, Step};

/// So many may be under way: few enough that their memory does not show.
const MOST: usize = 16;

/// So many are left when the caller is woken to begin others: enough that the thread never waits for the next one.
const LEAST: usize = 4;

/// The thread's stack. The child has one of its own.
const STACK_BYTES: usize = 128 * 1024;

/// Makes processes, at once or alongside. `T` is what the caller needs when the answer comes.
#[derive(Debug)]
pub struct Births<T> {
    spawner: Arc<Mutex<Spawner>>,
    /// Whether a thread gains anything, and is safe: on kernels that give the child a table of descriptors of its own.
    alongside: bool,
    raises: bool,
    ids: [u32; 2],
    desk: Option<Desk>,
    under_way: VecDeque<(T, String)>,
}

/// Where plans are left and answers are found. The thread ends when this is dropped.
#[derive(Debug)]
struct Desk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    papers: Mutex<Papers>,
    /// The thread waits here for a plan.
    todo: Condvar,
    /// The caller waits here for answers.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Papers {
    plans: VecDeque<OwnedPlan>,
    answers: VecDeque<Result<Child, SpawnError>>,
    /// The thread has nothing to do.
    idle: bool,
    /// How many answers the caller waits for; 0: it does not wait.
    wanted: usize,
    /// One of the two is gone.
    closed: bool,
}

impl<T> Births<T> {
    /// Births by this spawner. Where the machine has one processor there is no thread.
    #[must_use]
    pub fn new(spawner: Spawner) -> Self {
        let features = spawner.features();
        let several = thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
        Self {
            alongside: several && features.close_range && features.into_cgroup,
            raises: spawner.may_raise(),
            ids: spawner.ids(),
            spawner: Arc::new(Mutex::new(spawner)),
            desk: None,
            under_way: VecDeque::new(),
        }
    }

    /// See [`Spawner::may_raise`].
    #[must_use]
    pub fn may_raise(&self) -> bool {
        self.raises
    }

    /// See [`Spawner::ids`].
    #[must_use]
    pub fn ids(&self) -> [u32; 2] {
        self.ids
    }

    /// Makes the process and comes back when it runs its program. Births that are under way come first.
    ///
    /// # Errors
    /// As [`Spawner::spawn`].
    pub fn spawn(&self, plan: &SpawnPlan<'_>) -> Result<Child, SpawnError> {
        lock(&self.spawner).spawn(plan)
    }

    /// Whether births can be begun here.
    #[must_use]
    pub fn has_thread(&self) -> bool {
        self.alongside
    }

    /// Whether there is an answer to be taken, now or soon.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// How many answers must be taken before the next birth is begun. Where there are too many births under way, that is
    /// waited for here until most are done: to wake up for each would cost as much as it gains.
    #[must_use]
    pub fn due(&self) -> usize {
        let Some(desk) = self.desk.as_ref().filter(|_| self.under_way.len() >= MOST) else { return 0 };
        let due = self.under_way.len() - LEAST;
        drop(desk.wait(due));
        due
    }

    /// Begins a birth; [`Births::answer`] has what became of it.
    ///
    /// # Errors
    /// EMFILE; the thread cannot be made. Nothing was begun then.
    pub fn begin(&mut self, plan: SpawnPlan<'_>, what: T) -> Result<(), SpawnError> {
        let name = plan.program_name();
        let fail = |source| SpawnError::unplanned(Step::Fork, &name, source);
        let plan = plan.into_owned().map_err(fail)?;
        let desk = match &mut self.desk {
            Some(desk) => desk,
            none => none.insert(Desk::open(&self.spawner).map_err(fail)?),
        };
        desk.leave(plan).map_err(fail)?;
        self.under_way.push_back((what, name));
        Ok(())
    }

    /// The answer to the birth that was begun first; waits for it. None: nothing is under way.
    pub fn answer(&mut self) -> Option<(T, Result<Child, SpawnError>)> {
        let (what, name) = self.under_way.pop_front()?;
        let answer = self.desk.as_ref().and_then(|desk| desk.wait(1).answers.pop_front());
        let lost = || Err(SpawnError::unplanned(Step::Fork, &name, ended()));
        Some((what, answer.unwrap_or_else(lost)))
    }
}

impl Desk {
    /// Opens one, with the thread behind it.
    fn open(spawner: &Arc<Mutex<Spawner>>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (theirs, spawner) = (Self(Arc::clone(&shared)), Arc::clone(spawner));
        let work = move || {
            while let Some(plan) = theirs.next() {
                let answer = lock(&spawner).spawn(plan.plan());
                // Its descriptors are closed by the time that anybody can count on it.
                drop(plan);
                theirs.reply(answer);
            }
        };
        thread::Builder::new().name("births".into()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Self(shared))
    }

    fn leave(&self, plan: OwnedPlan) -> io::Result<()> {
        let mut papers = lock(&self.0.papers);
        if papers.closed {
            return Err(ended());
        }
        papers.plans.push_back(plan);
        if std::mem::take(&mut papers.idle) {
            self.0.todo.notify_one();
        }
        Ok(())
    }

    /// The next plan; none at the end.
    fn next(&self) -> Option<OwnedPlan> {
        let mut papers = lock(&self.0.papers);
        loop {
            if papers.closed {
                return None;
            }
            if let Some(plan) = papers.plans.pop_front() {
                return Some(plan);
            }
            papers.idle = true;
            papers = self.0.todo.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn reply(&self, answer: Result<Child, SpawnError>) {
        let mut papers = lock(&self.0.papers);
        papers.answers.push_back(answer);
        if papers.wanted > 0 && papers.answers.len() >= papers.wanted {
            papers.wanted = 0;
            self.0.done.notify_one();
        }
    }

    /// Waits until there are so many answers, or nobody who could give them.
    fn wait(&self, wanted: usize) -> MutexGuard<'_, Papers> {
        let mut papers = lock(&self.0.papers);
        while papers.answers.len() < wanted && !papers.closed {
            papers.wanted = wanted;
            papers = self.0.done.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
        papers.wanted = 0;
        papers
    }
}

/// Whichever side goes, the other one need not wait for it any more.
impl Drop for Desk {
    fn drop(&mut self) {
        lock(&self.0.papers).closed = true;
        self.0.todo.notify_one();
        self.0.done.notify_one();
    }
}

/// A panic has left nothing half-changed: the next birth fills the slots anew, and papers are only moved.
fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> io::Error {
    io::Error::other("the thread that makes processes has ended")
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::super::{Program, Stdio};
    use super::*;

    fn shell(script: &std::ffi::CStr) -> SpawnPlan<'static> {
        let argv = vec![c"sh".to_owned(), c"-c".to_owned(), script.to_owned()];
        SpawnPlan::new(Program::Path(c"/bin/sh".to_owned()), argv)
    }

    fn births<T>() -> Births<T> {
        let mut births = Births::new(Spawner::new().unwrap());
        // Also where the machine that tests has one processor.
        births.alongside = true;
        births
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
                Ok(child) => assert_eq!(child.pidfd.reap().unwrap(), crate::reap::Exit::Exited(7)),
                Err(error) => assert_eq!(error.step, Step::Exec, "{error}"),
            }
        }
        assert!(!births.is_under_way() && births.answer().is_none());
        // Afterwards as before, at once.
        births.spawn(&shell(c"exit 0")).unwrap().pidfd.reap().unwrap();
    }

    #[test]
    fn who_waits_for_a_thread_that_has_ended_is_told() {
        let mut births = births();
        let desk = Desk(Arc::default());
        // As a thread that panics leaves it.
        drop(Desk(Arc::clone(&desk.0)));
        births.desk = Some(desk);
        assert!(births.begin(shell(c"exit 0"), 1).is_err());
        births.under_way.push_back((2, "sh".to_owned()));
        let (what, answer) = births.answer().unwrap();
        assert_eq!(what, 2);
        assert!(answer.unwrap_err().to_string().contains("cannot make a process"));
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
}
