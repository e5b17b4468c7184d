//! The page of one unit in systemctl's layout.

use std::fmt::Display;
use std::io::{self, Write};

use agentd_protocol::text::cut;
use agentd_protocol::{ActiveState, LoadState, TrustState, UnitProperties};

use super::{UnitStatus, tree};
use crate::context::Context;
use crate::print::exit_name::ended;
use crate::print::size::bytes;
use crate::print::time::{span, span_ms};
use crate::print::{Style, one_line};
use crate::verbs::logs::line;

/// The longest text that a unit may put on one line of the page, in bytes: a page is to be looked at.
const LINE_MAX: usize = 1024;

/// Where values begin: systemctl's labels end in this column.
const INDENT: &str = "             ";

/// Writes the page.
pub(super) fn write(context: &Context, status: &UnitStatus, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page { context, unit: &status.properties, status, out };
    page.title()?;
    page.definition()?;
    page.state()?;
    page.processes()?;
    page.resources()?;
    page.troubles()?;
    if !page.unit.control_group.is_empty() {
        page.label("CGroup", one_line(&status.properties.control_group))?;
        tree::write(&status.processes, INDENT, page.out)?;
    }
    page.warnings()?;
    if !status.log.is_empty() {
        writeln!(page.out)?;
    }
    for entry in &status.log {
        writeln!(page.out, "{}", cut(&line(&context.clock, entry), LINE_MAX))?;
    }
    Ok(())
}

struct Page<'a, W> {
    context: &'a Context,
    unit: &'a UnitProperties,
    status: &'a UnitStatus,
    out: &'a mut W,
}

/// A text of the unit's, safe to show and short enough.
fn shown(text: &str) -> String {
    one_line(&cut(text, LINE_MAX)).into_owned()
}

impl<W: Write> Page<'_, W> {
    fn label(&mut self, label: &str, value: impl Display) -> io::Result<()> {
        writeln!(self.out, "{label:>11}: {value}")
    }

    fn title(&mut self) -> io::Result<()> {
        let (style, unit) = (self.context.style, self.unit);
        let dot = style.state(unit.active_state, Style::dot(unit.active_state));
        if unit.description.is_empty() || unit.description == unit.id {
            return writeln!(self.out, "{dot} {}", shown(&unit.id));
        }
        writeln!(self.out, "{dot} {} - {}", shown(&unit.id), shown(&unit.description))
    }

    fn definition(&mut self) -> io::Result<()> {
        let unit = self.unit;
        let mut details: Vec<String> = Vec::new();
        if !unit.fragment_path.is_empty() {
            details.push(shown(&unit.fragment_path));
        }
        if unit.load_state == LoadState::Loaded {
            details.push(unit.unit_file_state.to_string());
        }
        let loaded = match details.as_slice() {
            [] => unit.load_state.to_string(),
            some => format!("{} ({})", unit.load_state, some.join("; ")),
        };
        let bad = !matches!(unit.load_state, LoadState::Loaded | LoadState::Masked);
        let style = self.context.style;
        if bad {
            self.label("Loaded", style.bad(loaded))?
        } else {
            self.label("Loaded", loaded)?
        }
        for reason in unit.load_error.lines().take(20) {
            writeln!(self.out, "{INDENT}{}", shown(reason))?;
        }
        if !unit.unmet_condition.is_empty() {
            self.label(
                "Condition",
                style.warning(format!("{} does not hold", shown(&unit.unmet_condition))),
            )?;
        }
        for (at, path) in unit.drop_in_paths.iter().enumerate() {
            match at {
                0 => self.label("Drop-In", shown(path))?,
                _ => writeln!(self.out, "{INDENT}{}", shown(path))?,
            }
        }
        self.trust()
    }

    fn trust(&mut self) -> io::Result<()> {
        let style = self.context.style;
        match self.unit.trust {
            TrustState::Unchecked => Ok(()),
            TrustState::Trusted => {
                self.label("Trust", format!("signed by {}", shown(&self.unit.key_ids.join(", "))))
            }
            TrustState::Unsigned => self.label("Trust", style.warning("unsigned")),
            TrustState::Refused => self.label("Trust", style.bad("refused")),
        }
    }

    fn state(&mut self) -> io::Result<()> {
        let (unit, clock) = (self.unit, &self.context.clock);
        let word = format!("{} ({})", unit.active_state, shown(&unit.sub_state));
        let mut text = self.context.style.state(unit.active_state, word).to_string();
        if !matches!(unit.result.as_str(), "" | "success") {
            text += &format!(" (Result: {})", shown(&unit.result));
        }
        if unit.freezer_state == "frozen" {
            text += " (frozen)";
        }
        let since = since(unit);
        if since > 0 {
            text += &format!(" since {}; {}", clock.point(since), clock.relative(since));
        }
        self.label("Active", text)?;
        if !unit.failure.is_empty() {
            self.label("Reason", shown(&unit.failure))?;
        }
        if let Some(job) = &unit.job {
            self.label("Job", format!("{} ({})", job.id, shown(&job.kind)))?;
        }
        self.restarts()?;
        if !unit.invocation_id.is_empty() {
            self.label("Invocation", shown(&unit.invocation_id))?;
        }
        self.triggers()
    }

    fn restarts(&mut self) -> io::Result<()> {
        let (unit, clock) = (self.unit, &self.context.clock);
        let next = match unit.next_restart_timestamp {
            0 => String::new(),
            at => format!("; next in {}", clock.distance(at)),
        };
        match (unit.n_restarts, next.as_str()) {
            (0, "") => Ok(()),
            (count, _) => self.label("Restarts", format!("{count}{next}")),
        }
    }

    fn triggers(&mut self) -> io::Result<()> {
        let (unit, clock) = (self.unit, &self.context.clock);
        if unit.id.ends_with(".timer") {
            let known = |micros: u64| (micros > 0).then_some(micros);
            let by_span = known(unit.next_elapse_usec_monotonic).and_then(|at| clock.since_boot(at));
            let next = match known(unit.next_elapse_usec_realtime).into_iter().chain(by_span).min() {
                None => "n/a".to_owned(),
                Some(at) => format!("{}; {}", clock.point(at), clock.relative(at)),
            };
            self.label("Trigger", next)?;
        }
        for line in &unit.listen {
            self.label("Listen", shown(line))?;
        }
        for line in &unit.paths {
            self.label("Path", shown(line))?;
        }
        if unit.n_accepted + unit.n_refused > 0 {
            let counts = (unit.n_accepted, unit.n_connections, unit.n_refused);
            self.label("Accepted", format!("{}; Connected: {}; Refused: {}", counts.0, counts.1, counts.2))?;
        }
        for (label, units) in [("Triggers", &unit.triggers), ("TriggeredBy", &unit.triggered_by)] {
            if !units.is_empty() {
                self.label(label, shown(&units.join(" ")))?;
            }
        }
        if !unit.documentation.is_empty() {
            self.label("Docs", shown(&unit.documentation.join(" ")))?;
        }
        Ok(())
    }

    fn processes(&mut self) -> io::Result<()> {
        let unit = self.unit;
        let end = ended(unit.exec_main_code, unit.exec_main_status);
        if unit.main_pid > 0 {
            self.label("Main PID", self.named(unit.main_pid))?;
        } else if let Some(end) = end {
            let ran = unit.exec_main_exit_timestamp.saturating_sub(unit.exec_main_start_timestamp);
            let text = match unit.exec_main_pid {
                0 => format!("none ({end})"), // It was never executed.
                pid => format!("{pid} ({end}), ran for {}", ran_for(ran)),
            };
            self.label("Main PID", text)?;
        }
        if unit.control_pid > 0 {
            self.label("Control PID", self.named(unit.control_pid))?;
        }
        if !unit.status_text.is_empty() {
            self.label("Status", format!("\"{}\"", shown(&unit.status_text)))?;
        }
        if unit.status_errno != 0 {
            self.label("Error", io::Error::from_raw_os_error(unit.status_errno))?;
        }
        if !unit.status_bus_error.is_empty() {
            self.label("Error", shown(&unit.status_bus_error))?;
        }
        match unit.n_file_descriptor_store {
            0 => Ok(()),
            count => self.label("FD Store", format!("{count} (limit: {})", unit.file_descriptor_store_max)),
        }
    }

    /// `77 (web)`: a pid with the name of its process, where that is among those of the unit.
    fn named(&self, pid: u32) -> String {
        let mut processes = self.status.processes.groups.iter().flat_map(|group| &group.processes);
        match processes.find(|process| process.pid == pid && !process.comm.is_empty()) {
            Some(process) => format!("{pid} ({})", shown(&process.comm)),
            None => pid.to_string(),
        }
    }

    fn resources(&mut self) -> io::Result<()> {
        let unit = self.unit;
        if let Some(tasks) = unit.tasks_current {
            let limit = unit.tasks_max.map_or_else(String::new, |max| format!(" (limit: {max})"));
            self.label("Tasks", format!("{tasks}{limit}"))?;
        }
        if let Some(memory) = unit.memory_current {
            let parts = [("max", unit.memory_max), ("peak", unit.memory_peak)];
            let parts =
                parts.iter().filter_map(|(name, size)| size.map(|size| format!("{name}: {}", bytes(size))));
            let parts = parts.collect::<Vec<_>>().join(" ");
            let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
            self.label("Memory", format!("{}{parts}", bytes(memory)))?;
        }
        if let Some(used) = unit.cpu_usage_nsec {
            let quota = unit.cpu_quota_per_sec_usec.map(|usec| format!(" (quota: {}%)", usec / 10_000));
            self.label("CPU", format!("{}{}", span_ms(used / 1000), quota.unwrap_or_default()))?;
        }
        Ok(())
    }

    /// What its tasks wait for, where they do, and what SIGKILL did not end.
    fn troubles(&mut self) -> io::Result<()> {
        let unit = self.unit;
        let waits = [("memory", unit.memory_pressure), ("cpu", unit.cpu_pressure), ("io", unit.io_pressure)];
        let waits: Vec<String> = waits
            .iter()
            .filter_map(|(name, share)| share.filter(|share| *share > 0).map(|share| (name, share)))
            .map(|(name, share)| format!("{name}: {}.{:02}%", share / 100, share % 100))
            .collect();
        if !waits.is_empty() {
            self.label("Pressure", waits.join(" "))?;
        }
        let zombies = self.status.processes.zombies;
        if zombies > 0 {
            self.label("Zombies", format!("{zombies} (ended; their parent does not wait for them)"))?;
        }
        for survivor in &unit.survivors {
            let survivor = self.context.style.bad(shown(survivor)).to_string();
            self.label("Survivor", survivor)?;
        }
        Ok(())
    }

    fn warnings(&mut self) -> io::Result<()> {
        let (unit, style) = (self.unit, self.context.style);
        let mut warnings: Vec<String> = Vec::new();
        let id = &unit.id;
        if unit.need_restart {
            warnings.push(format!("{id} changed on disk, restart to apply: 'agentctl restart {id}'"));
        }
        if unit.need_daemon_reload {
            warnings.push(format!(
                "the files of {id} changed on disk: 'agentctl daemon-reload' loads them, 'agentctl apply' brings them \
                 into force"
            ));
        }
        warnings.extend(unit.limits_not_enforced.iter().chain(&unit.warnings).cloned());
        if !warnings.is_empty() {
            writeln!(self.out)?;
        }
        for warning in warnings.iter().take(20) {
            writeln!(self.out, "{}", style.warning(format!("Warning: {}", shown(warning))))?;
        }
        Ok(())
    }
}

/// A life down to the millisecond, or, where it was shorter than that, to the microsecond.
fn ran_for(micros: u64) -> String {
    if micros < 1000 { span(micros, 1) } else { span_ms(micros) }
}

/// When the present ActiveState began, as systemctl chooses it.
const fn since(unit: &UnitProperties) -> u64 {
    match unit.active_state {
        ActiveState::Active | ActiveState::Reloading => unit.active_enter_timestamp,
        ActiveState::Inactive | ActiveState::Failed => unit.inactive_enter_timestamp,
        ActiveState::Activating => unit.inactive_exit_timestamp,
        ActiveState::Deactivating => unit.active_exit_timestamp,
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
