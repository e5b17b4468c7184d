//! Resurrection: which ends are followed by a new start, after what delay, and when it is enough.

use std::time::Duration;

use agentd_unit::sections::{AgentLife, ExitStatusSet};
use agentd_unit::unit::ServiceBody;
use agentd_unit::{Restart, ServiceSection, UnitName, UnitSection};

use crate::clock::Monotonic;
use crate::event::ExitStatus;
use crate::rate::Rate;
use crate::state::ServiceResult;

/// The least delay after a program that could not be executed at all: `RestartSec=0` on a missing file would
/// otherwise keep the manager busy with nothing.
pub(crate) const SPAWN_FAILURE_FLOOR: Duration = Duration::from_millis(100);

/// The least time that a service must have been up before its back-off starts from the beginning again;
/// `RestartMaxDelaySec` if that is longer.
pub(crate) const STABLE_AFTER: Duration = Duration::from_secs(600);

/// So many starts within so long are no work for a unit without processes, whatever it says of its start limit.
const AT_ONCE_INTERVAL: Duration = Duration::from_secs(1);
const AT_ONCE_BURST: u32 = 500;

/// Whether `Restart` answers this end with a new start: the table of systemd.service(5), and two lines of our own
/// (what was not signed, and what was started too often, is for a person to look at).
pub(crate) const fn applies(policy: Restart, result: ServiceResult) -> bool {
    use ServiceResult as R;
    match (policy, result) {
        (Restart::No, _) | (_, R::Trust | R::StartLimitHit | R::ExecCondition) => false,
        (Restart::Always, _) => true,
        (Restart::OnSuccess, result) => matches!(result, R::Success),
        (Restart::OnFailure, result) => !matches!(result, R::Success),
        (Restart::OnAbnormal, result) => !matches!(result, R::Success | R::ExitCode),
        (Restart::OnAbort, result) => matches!(result, R::Signal | R::CoreDump),
        (Restart::OnWatchdog, result) => matches!(result, R::Watchdog),
    }
}

/// Whether a set of ends, as `SuccessExitStatus` has it, contains this one.
pub(crate) fn has(set: &ExitStatusSet, status: ExitStatus) -> bool {
    match status {
        ExitStatus::Exited(code) => set.codes.contains(&code),
        ExitStatus::Killed(signal) => set.signals.contains(&signal.number()),
        ExitStatus::Dumped(_) | ExitStatus::Unknown => false,
    }
}

/// Whether an end is followed by a new start: first what `RestartPreventExitStatus` and `RestartForceExitStatus` say of
/// the main process's end, then `Restart`.
pub(crate) fn follows(service: &ServiceSection, result: ServiceResult, main: Option<ExitStatus>) -> bool {
    use ServiceResult as R;
    let listed = |set| main.is_some_and(|status| has(set, status));
    let never = matches!(result, R::Trust | R::StartLimitHit | R::ExecCondition);
    if never || listed(&service.life.restart_prevent) {
        return false;
    }
    listed(&service.life.restart_force) || applies(service.restart, result)
}

/// Where the growth by `RestartFactor` ends without a `RestartMaxDelaySec`: a day is as good as never, and no number
/// runs over.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a unit says of its restarts: the keys of `[Service]`, and those of `[Agent]` where it has that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    service: &'a ServiceSection,
    agent: Option<&'a AgentLife>,
}

impl<'a> Rules<'a> {
    pub(crate) fn of(body: &'a ServiceBody) -> Self {
        Self { service: &body.service, agent: body.agent.as_ref().map(|agent| &agent.life) }
    }

    /// The delay before the restart of this step (0: the first), but for what chance adds.
    pub(crate) fn delay(self, step: u32) -> Duration {
        match self.agent.and_then(|life| life.restart_factor) {
            Some(factor) => by_factor(self.service, factor, step),
            None => by_steps(self.service, step),
        }
    }

    /// At most so much is added to each delay, by chance.
    pub(crate) fn extra(self) -> Duration {
        self.agent.map_or(Duration::ZERO, |life| life.restart_randomized_delay)
    }

    /// The uptime that ends a row of restarts; `None`: none does.
    fn reset_after(self) -> Option<Duration> {
        match self.agent {
            Some(life) => life.restart_reset.map(|reset| reset.max(life.min_ready)),
            None => Some(STABLE_AFTER.max(self.service.restart_max_delay.unwrap_or_default())),
        }
    }
}

/// Each delay is `RestartFactor` (in hundredths) times the one before, up to `RestartMaxDelaySec`.
fn by_factor(service: &ServiceSection, factor: u32, step: u32) -> Duration {
    let longest = service.restart_max_delay.unwrap_or(LONGEST_DELAY).max(service.restart_sec).as_micros();
    let mut delay = service.restart_sec.as_micros();
    // Where nothing grows, nothing is to be counted; else the end is reached within few steps.
    let steps = if factor <= 100 || delay == 0 { 0 } else { step };
    for _ in 0..steps {
        if delay >= longest {
            break;
        }
        delay = (delay * u128::from(factor)).div_ceil(100).min(longest);
    }
    Duration::from_micros(u64::try_from(delay).unwrap_or(u64::MAX))
}

/// systemd's formula: from `RestartSec` to `RestartMaxDelaySec` in `RestartSteps` steps of one factor.
fn by_steps(service: &ServiceSection, step: u32) -> Duration {
    let base = service.restart_sec;
    let Some(longest) = service.restart_max_delay else { return base };
    if step == 0 || service.restart_steps == 0 || base.is_zero() || base >= longest {
        return base;
    }
    if step >= service.restart_steps {
        return longest;
    }
    let factor = longest.as_secs_f64() / base.as_secs_f64();
    let grown = base.as_secs_f64() * factor.powf(f64::from(step) / f64::from(service.restart_steps));
    // Microseconds, as systemd counts, and never past the end of the growth.
    Duration::from_micros((grown * 1e6) as u64).clamp(base, longest)
}

/// What is said of a unit that was started too often.
pub(crate) fn limit_hit(unit: &UnitName) -> String {
    format!("{unit}: Start request repeated too quickly; it stays down. See 'agentctl reset-failed {unit}'.")
}

/// What is said of a unit that used up its `MaxRestarts`.
pub(crate) fn spent(unit: &UnitName) -> String {
    format!(
        "{unit}: It was restarted MaxRestarts times in a row; it stays down. See 'agentctl reset-failed {unit}'."
    )
}

/// How often, how recently and how far apart a unit was restarted automatically.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restarts {
    /// Since a person last started it.
    pub(crate) count: u32,
    /// How many there were in a row, none of them stable: where the back-off stands.
    pub(crate) step: u32,
    /// The automatic starts that the start limit still remembers, the oldest first.
    recent: Rate,
}

impl Restarts {
    /// Whether one more automatic start at `at` stays within `StartLimitBurst` in any `StartLimitIntervalSec`. If so
    /// it is counted.
    pub(crate) fn admit(&mut self, unit: &UnitSection, at: Monotonic) -> bool {
        self.recent.admit(unit.start_limit_interval, unit.start_limit_burst, at)
    }

    /// The same for a unit without processes that has no start limit. What fails and is started again by what that
    /// failure starts goes round within one turn of the manager, which would never end.
    pub(crate) fn admit_at_once(&mut self, at: Monotonic) -> bool {
        self.recent.admit(AT_ONCE_INTERVAL, AT_ONCE_BURST, at)
    }

    /// A new row begins if the service was up long enough.
    pub(crate) fn settle(&mut self, rules: Rules<'_>, up: Duration) {
        if rules.reset_after().is_some_and(|reset| up >= reset) {
            self.step = 0;
        }
    }

    /// Whether the row is as long as `MaxRestarts` lets it be.
    pub(crate) fn are_spent(&self, rules: Rules<'_>) -> bool {
        rules.agent.and_then(|life| life.max_restarts).is_some_and(|most| self.step >= most)
    }

    /// The counts of another manager: restarts, the step of the back-off, the starts that the limit counts.
    pub(crate) fn of((count, step, recent): (u32, u32, Rate)) -> Self {
        Self { count, step, recent }
    }

    /// The automatic starts that the start limit still remembers, the oldest first.
    pub(crate) fn recent(&self) -> Vec<Monotonic> {
        self.recent.recent().collect()
    }

    /// Whether there is something to forget.
    pub(crate) fn count_something(&self) -> bool {
        self.count > 0 || self.step > 0 || self.recent.recent().next().is_some()
    }

    /// Forgets everything: a person started it, or reset-failed.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_follows_the_table_of_systemd_service() {
        use Restart as P;
        use ServiceResult as R;
        let results = [
            R::Success,
            R::ExitCode,
            R::Signal,
            R::CoreDump,
            R::Timeout,
            R::Watchdog,
            R::OomKill,
            R::Resources,
            R::Protocol,
            R::Trust,
            R::StartLimitHit,
            R::ExecCondition,
        ];
        for (policy, expected) in [
            (P::No, "............"),
            (P::Always, "xxxxxxxxx..."),
            (P::OnSuccess, "x..........."),
            (P::OnFailure, ".xxxxxxxx..."),
            (P::OnAbnormal, "..xxxxxxx..."),
            (P::OnAbort, "..xx........"),
            (P::OnWatchdog, ".....x......"),
        ] {
            let row: String = results.iter().map(|r| if applies(policy, *r) { 'x' } else { '.' }).collect();
            assert_eq!(row, expected, "{policy:?}");
        }
    }

    #[test]
    fn the_delay_grows_in_steps_from_restart_sec_to_the_longest() {
        let ms = Duration::from_millis;
        for (case, base, steps, longest, expected) in [
            ("no steps", 100, 0, Some(1600), [100, 100, 100, 100, 100, 100]),
            ("no end", 100, 4, None, [100, 100, 100, 100, 100, 100]),
            ("four steps of two", 100, 4, Some(1600), [100, 200, 400, 800, 1600, 1600]),
            ("one step", 100, 1, Some(700), [100, 700, 700, 700, 700, 700]),
            ("from nothing nothing grows", 0, 4, Some(1600), [0; 6]),
            ("the end below the start", 900, 4, Some(300), [900; 6]),
        ] {
            let service = ServiceSection {
                restart_sec: ms(base),
                restart_steps: steps,
                restart_max_delay: longest.map(ms),
                ..ServiceSection::default()
            };
            for (step, expected) in expected.into_iter().enumerate() {
                let seen = by_steps(&service, step as u32);
                let error = seen.abs_diff(ms(expected));
                assert!(error <= Duration::from_micros(1), "{case}, step {step}: {seen:?}");
            }
        }
    }

    #[test]
    fn the_delay_grows_by_its_factor_and_never_past_its_end() {
        let ms = Duration::from_millis;
        for (case, base, factor, longest, expected) in [
            ("twice as long each time", 100, 200, Some(400), [100, 200, 400, 400, 400]),
            ("an end that is no power", 100, 300, Some(500), [100, 300, 500, 500, 500]),
            ("half as long again", 200, 150, Some(60_000), [200, 300, 450, 675, 1013]),
            ("no growth", 100, 100, Some(400), [100; 5]),
            ("from nothing nothing grows", 0, 200, Some(400), [0; 5]),
        ] {
            let service = ServiceSection {
                restart_sec: ms(base),
                restart_steps: 3, // The factor wins.
                restart_max_delay: longest.map(ms),
                ..ServiceSection::default()
            };
            let life = AgentLife { restart_factor: Some(factor), ..AgentLife::default() };
            let rules = Rules { service: &service, agent: Some(&life) };
            for (step, expected) in expected.into_iter().enumerate() {
                let seen = rules.delay(step as u32);
                assert!(seen.abs_diff(ms(expected)) < ms(1), "{case}, step {step}: {seen:?}");
            }
        }
        let service = ServiceSection { restart_sec: ms(1), ..ServiceSection::default() };
        assert_eq!(by_factor(&service, 100_000, u32::MAX), LONGEST_DELAY, "no number runs over");
        let slow = ServiceSection { restart_sec: LONGEST_DELAY * 2, ..ServiceSection::default() };
        assert_eq!(by_factor(&slow, 200, 9), LONGEST_DELAY * 2, "RestartSec is the least");
    }

    #[test]
    fn what_ends_a_row_is_restart_reset_sec_and_never_less_than_min_ready_sec() {
        let secs = Duration::from_secs;
        let service = ServiceSection::default();
        for (reset, least, up, ends) in [
            (Some(5), 0, 4, false),
            (Some(5), 0, 5, true),
            (Some(5), 9, 8, false),
            (Some(5), 9, 9, true),
            (None, 1, 1_000_000, false),
        ] {
            let (restart_reset, min_ready) = (reset.map(secs), secs(least));
            let life = AgentLife { restart_reset, min_ready, max_restarts: Some(3), ..AgentLife::default() };
            let rules = Rules { service: &service, agent: Some(&life) };
            let mut restarts = Restarts { step: 3, ..Restarts::default() };
            assert!(restarts.are_spent(rules));
            restarts.settle(rules, secs(up));
            assert_eq!(restarts.are_spent(rules), !ends, "{reset:?} {least} {up}");
        }
    }

    #[test]
    fn b059_no_window_holds_more_starts_than_the_burst() {
        let limits = UnitSection {
            start_limit_interval: Duration::from_secs(10),
            start_limit_burst: 2,
            ..UnitSection::default()
        };
        let mut restarts = Restarts::default();
        let admitted: Vec<u64> = (0..60)
            .filter(|second| restarts.admit(&limits, Monotonic(Duration::from_secs(*second))))
            .collect();
        assert_eq!(admitted, [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51]);
    }

    #[test]
    fn a_limit_of_zero_is_no_limit() {
        for (interval, burst) in [(0, 5), (10, 0)] {
            let limits = UnitSection {
                start_limit_interval: Duration::from_secs(interval),
                start_limit_burst: burst,
                ..UnitSection::default()
            };
            let mut restarts = Restarts::default();
            assert!((0..100).all(|_| restarts.admit(&limits, Monotonic::default())));
        }
    }

    #[test]
    fn a_long_life_starts_the_back_off_anew_and_a_short_one_does_not() {
        let service = ServiceSection {
            restart_max_delay: Some(Duration::from_secs(3600)),
            ..ServiceSection::default()
        };
        for (up, step) in [(3599, 7), (3600, 0)] {
            let mut restarts = Restarts { step: 7, ..Restarts::default() };
            restarts.settle(Rules { service: &service, agent: None }, Duration::from_secs(up));
            assert_eq!(restarts.step, step, "{up}");
        }
    }
}
