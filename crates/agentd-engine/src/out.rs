//! What one call of the engine may touch outside unit state: the time it was given, the effects it makes, new ids.

use std::time::Duration;

use agentd_unit::UnitName;

use crate::clock::Now;
use crate::effect::{Effect, Level, Record};
use crate::ids::{EffectId, InvocationId, JobId};
use crate::random::Random;

/// Where all ids come from. None is given out twice in the life of a manager.
#[derive(Debug)]
pub(crate) struct Ids {
    effect: u64,
    job: u32,
    random: Random,
}

impl Ids {
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        Self { effect: 0, job: 0, random: Random::new(seed) }
    }

    pub(crate) fn effect(&mut self) -> EffectId {
        self.effect += 1;
        EffectId(self.effect)
    }

    pub(crate) fn job(&mut self) -> JobId {
        self.job = self.job.wrapping_add(1);
        JobId(self.job)
    }

    /// A span from zero to `most`, each as likely as any other. No number is drawn where there is no choice.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        let choices = u64::try_from(most.as_micros()).unwrap_or(u64::MAX - 1).saturating_add(1);
        if choices == 1 { Duration::ZERO } else { Duration::from_micros(self.random.next() % choices) }
    }

    /// A run's id, formed as a random UUID (RFC 9562, version 4) as systemd's are.
    pub(crate) fn run(&mut self) -> InvocationId {
        let bits = self.random.next_wide();
        let version = bits & !(0xf << 76) | 0x4 << 76;
        InvocationId(version & !(0x3 << 62) | 0x2 << 62)
    }
}

/// The outside, as one transition sees it.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    /// When it happens.
    pub(crate) now: Now,
    /// What the world must do, in order.
    pub(crate) effects: &'a mut Vec<Effect>,
    /// Where ids come from.
    pub(crate) ids: &'a mut Ids,
    /// What is quieter is not said.
    pub(crate) quietest: Level,
}

impl Out<'_> {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Whether something of this level is said at all: for who says much, and would make a text for nobody.
    pub(crate) fn says(&self, level: Level) -> bool {
        level <= self.quietest
    }

    /// Says something about a unit, and about its run if there is one.
    pub(crate) fn log(
        &mut self,
        level: Level,
        unit: &UnitName,
        run: Option<InvocationId>,
        message_id: Option<&'static str>,
        text: String,
    ) {
        if !self.says(level) {
            return;
        }
        let unit = Some(unit.clone());
        self.effects.push(Effect::Log(Record { level, unit, run, message_id, text }));
    }
}

/// The kinds of message that systemd has ids for (sd-messages.h); tools find them by these.
pub(crate) mod message {
    pub(crate) const STARTING: &str = "7d4958e842da4a758f6c1cdc7b36dcc5";
    pub(crate) const STARTED: &str = "39f53479d3a045ac8e11786248231fbf";
    pub(crate) const START_FAILED: &str = "be02cf6855d2428ba40df7e9d022f03d";
    pub(crate) const STOPPING: &str = "de5b426a63be47a7b6ac3eaac82e2f6f";
    pub(crate) const STOPPED: &str = "9d1aaa27d60140bd96365438aad20286";
    pub(crate) const DEACTIVATED: &str = "7ad2d189f7e94e70a38c781354912448";
    pub(crate) const UNIT_FAILED: &str = "d9b373ed55a64feb8242e02dbe79a49c";
    pub(crate) const PROCESS_EXIT: &str = "98e322203f7a4ed290d09fe03c09fe15";
    pub(crate) const RESTART_SCHEDULED: &str = "5eb03494b6584870a536b337290809b3";
    pub(crate) const OUT_OF_MEMORY: &str = "fe6faa94e7774663a0da52717891d8ef";
}
