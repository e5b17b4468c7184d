//! What no single key can tell: rules between the settings of one unit, and the defaults that hang on others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Severity};
use crate::draft::{Draft, Place};
use crate::name::{UnitName, UnitType};
use crate::schema::Section;
use crate::sections::{
    Action, AgentKind, ExitStatusSet, ExitType, NotifyAccess, RESTART_RESET, Restart, ServiceType,
    TimerTrigger,
};
use crate::source::SourceFile;

/// How long one run of a service with its own timer may take, unless it says otherwise.
const TIMER_RUNTIME_MAX: Duration = Duration::from_secs(30);

/// Settles defaults and tells every broken rule.
pub(crate) fn cross_check(
    name: &UnitName,
    draft: &mut Draft,
    files: &[Arc<SourceFile>],
    out: &mut Vec<Diagnostic>,
) {
    let mut check = Check { name, draft, files, out };
    check.own_edges();
    check.aliases();
    match name.unit_type() {
        UnitType::Service => {
            check.settle_service();
            check.python();
            check.commands();
            check.restart();
            check.agent_restart();
            check.life();
            check.own_timer();
            check.own_socket();
            check.own_path();
            check.rollout();
        }
        UnitType::Timer => check.timer(),
        UnitType::Socket => check.socket(),
        UnitType::Path => check.path(),
        UnitType::Target | UnitType::Slice => {}
    }
}

struct Check<'a> {
    name: &'a UnitName,
    draft: &'a mut Draft,
    files: &'a [Arc<SourceFile>],
    out: &'a mut Vec<Diagnostic>,
}

impl Check<'_> {
    /// A finding at a key, else at the section, else at the top of the main file.
    fn tell(&mut self, severity: Severity, section: Section, key: &'static str, message: String, help: &str) {
        let place = self.draft.key(section, key).or_else(|| self.draft.section(section)).cloned();
        let Place { file, span } = place.unwrap_or(Place { file: 0, span: 0..0 });
        let Some(file) = self.files.get(file) else { return };
        let finding = Diagnostic::error(file, span, message).with_help(help.to_owned());
        self.out.push(Diagnostic { severity, ..finding });
    }

    fn error(&mut self, section: Section, key: &'static str, message: impl Into<String>, help: &str) {
        self.tell(Severity::Error, section, key, message.into(), help);
    }

    fn was_set(&self, section: Section, key: &'static str) -> bool {
        self.draft.key(section, key).is_some()
    }

    /// A unit that requires itself could never start; the edge goes, and the unit works.
    fn own_edges(&mut self) {
        let unit = &mut self.draft.unit;
        let edges = [
            ("Requires", &mut unit.requires),
            ("Requisite", &mut unit.requisite),
            ("Wants", &mut unit.wants),
            ("BindsTo", &mut unit.binds_to),
            ("PartOf", &mut unit.part_of),
            ("Upholds", &mut unit.upholds),
            ("Conflicts", &mut unit.conflicts),
            ("Before", &mut unit.before),
            ("After", &mut unit.after),
            ("OnFailure", &mut unit.on_failure),
            ("OnSuccess", &mut unit.on_success),
            ("PropagatesReloadTo", &mut unit.propagates_reload_to),
            ("ReloadPropagatedFrom", &mut unit.reload_propagated_from),
            ("PropagatesStopTo", &mut unit.propagates_stop_to),
            ("StopPropagatedFrom", &mut unit.stop_propagated_from),
        ];
        let own =
            edges.into_iter().filter_map(|(key, set)| set.remove(self.name).then_some((Section::Unit, key)));
        let mut own: Vec<_> = own.collect();
        let install = &mut self.draft.install;
        let edges = [
            ("WantedBy", &mut install.wanted_by),
            ("RequiredBy", &mut install.required_by),
            ("UpheldBy", &mut install.upheld_by),
        ];
        own.extend(
            edges
                .into_iter()
                .filter_map(|(key, set)| set.remove(self.name).then_some((Section::Install, key))),
        );
        for (section, key) in own {
            let message = format!("[{}] {key}: names the unit itself and is ignored", section.as_str());
            self.tell(Severity::Warning, section, key, message, "take it out");
        }
    }

    fn aliases(&mut self) {
        self.draft.install.alias.remove(self.name);
        let unit_type = self.name.unit_type();
        let other = self.draft.install.alias.iter().find(|alias| alias.unit_type() != unit_type).cloned();
        if let Some(other) = other {
            let message = format!("[Install] Alias: '{other}' is of another type than the unit");
            self.error(
                Section::Install,
                "Alias",
                message,
                &format!("an alias of a {unit_type} ends in .{unit_type}"),
            );
        }
    }

    /// Defaults that hang on other keys.
    fn settle_service(&mut self) {
        let python = self.draft.agent.kind == AgentKind::Python;
        if !self.was_set(Section::Service, "Type") {
            // As in systemd: a service that runs nothing is over at once.
            let runs_nothing = !python && self.draft.service.exec_start.is_empty();
            match (python, runs_nothing) {
                (true, _) => self.draft.service.service_type = ServiceType::Notify,
                (_, true) => self.draft.service.service_type = ServiceType::Oneshot,
                _ => {}
            }
        }
        let timeout_set =
            ["TimeoutStartSec", "TimeoutSec"].iter().any(|key| self.was_set(Section::Service, key));
        let access_set = self.was_set(Section::Service, "NotifyAccess");
        let runtime_set = self.was_set(Section::Service, "RuntimeMaxSec");
        let own_timer = self.draft.section(Section::Timer).is_some();
        let ambient = self.draft.ambient.unwrap_or(0);
        let service = &mut self.draft.service;
        service.ambient_capabilities = ambient;
        if service.service_type == ServiceType::Oneshot && !timeout_set {
            service.timeout_start = None;
        }
        let notifies = matches!(service.service_type, ServiceType::Notify | ServiceType::NotifyReload)
            || service.watchdog.is_some()
            || service.life.descriptor_store_max > 0;
        if notifies && service.notify_access == NotifyAccess::None {
            service.notify_access = NotifyAccess::Main;
            if access_set {
                let message = "[Service] NotifyAccess: none is taken as main, since Type, WatchdogSec or \
                     FileDescriptorStoreMax needs it";
                self.tell(
                    Severity::Warning,
                    Section::Service,
                    "NotifyAccess",
                    message.to_owned(),
                    "write main",
                );
            }
        }
        let forks = self.draft.service.service_type == ServiceType::Forking;
        for key in ["PIDFile", "GuessMainPID"] {
            if !forks && self.was_set(Section::Service, key) {
                let message = format!("[Service] {key}: does nothing without Type=forking");
                self.tell(Severity::Warning, Section::Service, key, message, "write Type = \"forking\"");
            }
        }
        if forks && self.draft.service.sandbox.private_pids {
            // When the process that was started ends, the kernel ends all of its processes.
            let message = "[Service] PrivatePIDs: cannot be had with Type=forking".to_owned();
            self.error(Section::Service, "PrivatePIDs", &message, "have it stay in the foreground");
        }
        let by_signal = self.draft.service.service_type == ServiceType::NotifyReload;
        if !by_signal && self.was_set(Section::Service, "ReloadSignal") {
            let message = "[Service] ReloadSignal: does nothing without Type=notify-reload".to_owned();
            let help = "write Type = \"notify-reload\"";
            self.tell(Severity::Warning, Section::Service, "ReloadSignal", message, help);
        }
        if own_timer && !runtime_set {
            self.draft.service.runtime_max = Some(TIMER_RUNTIME_MAX);
        }
        dedup_environment(&mut self.draft.service.environment);
    }

    fn python(&mut self) {
        let python = self.draft.agent.kind == AgentKind::Python;
        if python && self.draft.agent.module.is_none() {
            let help = "write Module = \"/path/agent.py\" below [Agent]";
            self.error(Section::Agent, "Kind", "[Agent] Kind: a Python agent needs Module", help);
        }
        if python && !self.draft.service.exec_start.is_empty() {
            let message = "[Service] ExecStart: a Python agent has none; its module is run by the kit";
            self.error(Section::Service, "ExecStart", message, "take it out, or take Kind = \"python\" out");
        }
        for key in ["Module", "Python"] {
            if !python && self.was_set(Section::Agent, key) {
                let message = format!("[Agent] {key}: is for Python agents alone");
                self.error(Section::Agent, key, message, "write Kind = \"python\" below [Agent]");
            }
        }
    }

    fn commands(&mut self) {
        let service = &self.draft.service;
        let oneshot = service.service_type == ServiceType::Oneshot;
        let python = self.draft.agent.kind == AgentKind::Python;
        let starts = service.exec_start.len();
        // As in systemd: a oneshot may do all its work in ExecStop, if it stays active until then.
        let acts = self.draft.unit.system.success_action != Action::None;
        let may_lack = python || acts || service.remain_after_exit && !service.exec_stop.is_empty();
        if starts == 0 && !may_lack {
            let help = "write ExecStart = [\"/usr/bin/program\"] below [Service]";
            let message = format!("[Service] ExecStart: is missing, so {} has nothing to run", self.name);
            self.error(Section::Service, "ExecStart", message, help);
        }
        if starts > 1 && !oneshot {
            let message = format!(
                "[Service] ExecStart: there are {starts} commands, and only Type=oneshot may have several"
            );
            let help = "keep one, write Type = \"oneshot\", or reset the list with [] before";
            self.error(Section::Service, "ExecStart", message, help);
        }
    }

    fn restart(&mut self) {
        let service = &self.draft.service;
        if service.service_type == ServiceType::Oneshot
            && matches!(service.restart, Restart::Always | Restart::OnSuccess)
        {
            let message = "[Service] Restart: a oneshot that ended well would start again for ever";
            self.error(Section::Service, "Restart", message, "write on-failure, or let a timer repeat it");
        }
        let service = &self.draft.service;
        let (steps, bound) = (service.restart_steps, service.restart_max_delay);
        let by_factor = self.draft.agent.life.restart_factor.is_some();
        if (steps > 0) != bound.is_some() && !by_factor {
            let (key, other) = if steps > 0 {
                ("RestartSteps", "RestartMaxDelaySec")
            } else {
                ("RestartMaxDelaySec", "RestartSteps")
            };
            let message = format!("[Service] {key}: does nothing without {other}");
            self.tell(Severity::Warning, Section::Service, key, message, "set both");
        }
        if bound.is_some_and(|bound| bound < self.draft.service.restart_sec) {
            let message = "[Service] RestartMaxDelaySec: is shorter than RestartSec";
            self.error(
                Section::Service,
                "RestartMaxDelaySec",
                message,
                "the wait grows from RestartSec to it",
            );
        }
    }

    /// The rows of restarts of `[Agent]`.
    fn agent_restart(&mut self) {
        let life = &self.draft.agent.life;
        if !self.was_set(Section::Agent, "RestartResetSec") {
            let bound = self.draft.service.restart_max_delay.unwrap_or_default();
            let reset = if life.min_ready.is_zero() { RESTART_RESET.max(bound) } else { life.min_ready };
            self.draft.agent.life.restart_reset = Some(reset);
        }
        if self.was_set(Section::Agent, "RestartFactor") && self.draft.service.restart_steps > 0 {
            let message = "[Service] RestartSteps: does nothing beside RestartFactor of [Agent]".to_owned();
            self.tell(Severity::Warning, Section::Service, "RestartSteps", message, "take one of them out");
        }
        let never = self.draft.service.restart == Restart::No
            && self.draft.service.life.restart_force == ExitStatusSet::default();
        for key in ["RestartFactor", "RestartRandomizedDelaySec", "MaxRestarts", "RestartResetSec"] {
            if never && self.was_set(Section::Agent, key) {
                let message = format!("[Agent] {key}: does nothing without Restart of [Service]");
                let help = "write for example Restart = \"on-failure\" below [Service]";
                self.tell(Severity::Warning, Section::Agent, key, message, help);
            }
        }
    }

    /// What a life may last for, and what its end is.
    fn life(&mut self) {
        let service = &self.draft.service;
        let unbounded = service.runtime_max.is_none();
        let by_group = service.life.exit_type == ExitType::Cgroup;
        let is_oneshot = service.service_type == ServiceType::Oneshot;
        if unbounded && self.was_set(Section::Service, "RuntimeRandomizedExtraSec") {
            let key = "RuntimeRandomizedExtraSec";
            let message = format!("[Service] {key}: does nothing without RuntimeMaxSec");
            self.tell(Severity::Warning, Section::Service, key, message, "set both");
        }
        // As in systemd: a oneshot is over when its commands are.
        if by_group && is_oneshot {
            let message = "[Service] ExitType: cgroup is not allowed for Type=oneshot";
            self.error(Section::Service, "ExitType", message, "write main, or another Type");
        }
    }

    fn own_timer(&mut self) {
        if self.draft.section(Section::Timer).is_none() {
            return;
        }
        if self.was_set(Section::Timer, "Unit") {
            let message = "[Timer] Unit: a service's own timer starts that service";
            self.error(Section::Timer, "Unit", message, "take it out, or write a .timer.toml of its own");
        }
        self.triggers();
        if self.draft.service.remain_after_exit && self.repeats() {
            let message =
                "[Service] RemainAfterExit: the timer fires once only, since the service then stays active";
            self.tell(
                Severity::Warning,
                Section::Service,
                "RemainAfterExit",
                message.to_owned(),
                "take it out",
            );
        }
    }

    fn own_socket(&mut self) {
        if self.draft.section(Section::Socket).is_none() {
            return;
        }
        if self.was_set(Section::Socket, "Service") {
            let message = "[Socket] Service: a service's own socket starts that service";
            self.error(
                Section::Socket,
                "Service",
                message,
                "take it out, or write a .socket.toml of its own",
            );
        }
        self.settle_accept();
        if self.draft.socket.accept {
            let message = "[Socket] Accept: needs a template for its instances, which this service is not";
            self.error(Section::Socket, "Accept", message, "write NAME@.service.toml and NAME.socket.toml");
        }
        self.socket();
    }

    fn own_path(&mut self) {
        if self.draft.section(Section::Path).is_none() {
            return;
        }
        if self.was_set(Section::Path, "Unit") {
            let message = "[Path] Unit: a service's own path unit starts that service";
            self.error(Section::Path, "Unit", message, "take it out, or write a .path.toml of its own");
        }
        self.path();
    }

    fn timer(&mut self) {
        self.triggers();
        if self.draft.timer.unit.as_ref() == Some(self.name) {
            let message = "[Timer] Unit: names the timer itself";
            self.error(Section::Timer, "Unit", message, "name the unit to start");
        }
    }

    fn socket(&mut self) {
        let socket = &self.draft.socket;
        if socket.listen.is_empty() {
            let help = "write for example ListenStream = 8080 below [Socket]";
            return self.error(Section::Socket, "", "[Socket] listens on nothing", help);
        }
        let links = !socket.symlinks.is_empty();
        let files = socket.listen.iter().filter(|listen| listen.has_a_file()).count();
        let name = socket.descriptor_name.clone();
        self.settle_accept();
        if self.draft.socket.accept && self.draft.socket.service.is_some() {
            let message = "[Socket] Service: with Accept each connection has its own instance";
            self.error(Section::Socket, "Service", message, "take it out, or take Accept out");
        }
        if links && files != 1 {
            let message = format!("[Socket] Symlinks: are links to one file, and it listens at {files}");
            let help = "leave one socket or FIFO with a path, or take Symlinks out";
            self.error(Section::Socket, "Symlinks", message, help);
        }
        if let Some(name) = name.filter(|name| !is_descriptor_name(name)) {
            let message = format!("[Socket] FileDescriptorName: '{name}' cannot stand in LISTEN_FDNAMES");
            let help = "write at most 255 printable ASCII characters without ':'";
            self.error(Section::Socket, "FileDescriptorName", message, help);
        }
    }

    /// `Accept` is for what takes connections, and nothing for the rest, systemd.socket(5).
    fn settle_accept(&mut self) {
        let socket = &mut self.draft.socket;
        let connected = socket.listen.iter().filter(|listen| listen.takes_connections()).count();
        if !socket.accept || connected == socket.listen.len() {
            return;
        }
        socket.accept = false;
        if connected > 0 {
            let message =
                "[Socket] Accept: would start instances for its connections and one service for the rest";
            let help = "write two socket units, one with Accept and one without";
            self.error(Section::Socket, "Accept", message, help);
        }
    }

    fn path(&mut self) {
        if self.draft.path.watches.is_empty() {
            let help = "write for example PathExists = \"/run/x\" below [Path]";
            return self.error(Section::Path, "", "[Path] watches nothing", help);
        }
        if self.draft.path.unit.as_ref() == Some(self.name) {
            let message = "[Path] Unit: names the path unit itself";
            self.error(Section::Path, "Unit", message, "name the unit to start");
        }
    }

    fn rollout(&mut self) {
        let rollout = &self.draft.rollout;
        if rollout.max_surge == 0 && rollout.max_unavailable == 0 {
            let message =
                "[Rollout] MaxSurge: is 0 as MaxUnavailable is, so no replica could ever be exchanged";
            self.error(Section::Rollout, "MaxSurge", message, "write 1 for one of them");
        }
        let life = &self.draft.agent.life;
        if life.min_replicas.is_some_and(|least| least > life.replicas) {
            let message = "[Agent] MinReplicas: is more than Replicas";
            self.error(Section::Agent, "MinReplicas", message, "write at most Replicas");
        }
    }

    fn repeats(&self) -> bool {
        self.draft.timer.triggers.iter().any(|trigger| {
            !matches!(trigger, TimerTrigger::Boot(_) | TimerTrigger::Startup(_) | TimerTrigger::Active(_))
        })
    }

    fn triggers(&mut self) {
        if self.draft.timer.triggers.is_empty() {
            let help = "write for example OnCalendar = \"daily\" or OnUnitActiveSec = \"5min\" below [Timer]";
            self.error(Section::Timer, "", "[Timer] has no trigger, so it would never fire", help);
        }
        if self.draft.timer.persistent && !self.has_calendar() {
            let message = "[Timer] Persistent: does nothing without OnCalendar or Cron";
            self.tell(Severity::Warning, Section::Timer, "Persistent", message.to_owned(), "take it out");
        }
    }

    fn has_calendar(&self) -> bool {
        let calendar =
            |trigger: &TimerTrigger| matches!(trigger, TimerTrigger::Calendar(_) | TimerTrigger::Cron(_));
        self.draft.timer.triggers.iter().any(calendar)
    }
}

/// So many variables are compared with each other sooner than they are put into a table.
const FEW: usize = 16;

/// Keeps the last value of each name, at the place of the first.
fn dedup_environment(environment: &mut Vec<(String, String)>) {
    let is_new = |place: usize| environment[..place].iter().all(|(name, _)| *name != environment[place].0);
    if environment.len() <= FEW && (1..environment.len()).all(is_new) {
        return;
    }
    let last: HashMap<String, String> = environment.iter().cloned().collect();
    let mut seen = HashSet::new();
    environment.retain_mut(|(name, value)| {
        if let Some(last) = last.get(name) {
            value.clone_from(last);
        }
        seen.insert(name.clone())
    });
}

/// sd_listen_fds_with_names(3): names stand in a list with `:` between them.
fn is_descriptor_name(name: &str) -> bool {
    name.len() <= 255 && name.bytes().all(|byte| (b' '..0x7f).contains(&byte) && byte != b':')
}
