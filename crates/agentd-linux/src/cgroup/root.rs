//! The part of the tree that is ours: `init.scope` for the manager, a slice for each group of units.
//!
//! # Invariants
//!
//! - No cgroup with controllers enabled for its children has processes of its own: the kernel would refuse one or
//!   the other ("no internal processes", cgroup-v2.rst).
//! - Controllers are enabled level by level from our root down, before a leaf is made.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, mkdirat};

use super::detect::{self, Layout, Mount};
use super::error::CgroupError;
use super::leaf::{Leaf, Removal, remove_empty};
use super::limits::Limits;

/// A controller that limits of units need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// `CPUQuota`, `CPUWeight`.
    Cpu,
    /// `AllowedCPUs`.
    Cpuset,
    /// `IOWeight`.
    Io,
    /// `Memory*`.
    Memory,
    /// `TasksMax`.
    Pids,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Cpuset, Self::Io, Self::Memory, Self::Pids];

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Io => "io",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// Which controllers the units' cgroups have: what can be enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Enforceable {
    /// `CPUQuota`, `CPUWeight`.
    pub cpu: bool,
    /// `AllowedCPUs`.
    pub cpuset: bool,
    /// `IOWeight`.
    pub io: bool,
    /// `Memory*`.
    pub memory: bool,
    /// `TasksMax`.
    pub pids: bool,
}

impl Enforceable {
    /// Whether limits of this controller hold.
    #[must_use]
    pub const fn has(self, controller: Controller) -> bool {
        match controller {
            Controller::Cpu => self.cpu,
            Controller::Cpuset => self.cpuset,
            Controller::Io => self.io,
            Controller::Memory => self.memory,
            Controller::Pids => self.pids,
        }
    }

    /// What `cgroup.controllers` and `cgroup.subtree_control` say: names with spaces between.
    fn parse(names: &str) -> Self {
        let has = |controller: Controller| names.split_whitespace().any(|name| name == controller.name());
        Self {
            cpu: has(Controller::Cpu),
            cpuset: has(Controller::Cpuset),
            io: has(Controller::Io),
            memory: has(Controller::Memory),
            pids: has(Controller::Pids),
        }
    }

    /// Those that are there, in order.
    fn controllers(self) -> impl Iterator<Item = Controller> {
        Controller::ALL.into_iter().filter(move |controller| self.has(*controller))
    }
}

/// What the manager may make of the cgroup that it was started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// All of it is the manager's: PID 1 of a machine or a container. Other processes in it, which a container
    /// runtime may have put there, are moved along with the manager.
    Whole,
    /// A folder of this name in it: a manager beside other software. Foreign processes are left where they are.
    Folder(&'a str),
}

/// The cgroup that the manager itself and those it found beside it live in.
pub const INIT_SCOPE: &str = "init.scope";

/// The manager's part of the tree.
#[derive(Debug)]
pub struct CgroupRoot {
    /// The cgroup that the manager was started in. For a [`Place::Whole`] the same as `folder`.
    start: PathBuf,
    folder: PathBuf,
    /// As `/proc/PID/cgroup` says it, without a slash at the end; empty for the root.
    cgroup: String,
    layout: Layout,
    enforceable: Enforceable,
    problems: Vec<CgroupError>,
    /// Slices that are made and have their controllers enabled, held so that the way to each unit's cgroup is short.
    slices: HashMap<String, OwnedFd>,
}

impl CgroupRoot {
    /// Moves the manager into `init.scope` of its part of the tree and enables for the units what the kernel has.
    /// Idempotent: a manager that is started again from `init.scope` finds its part.
    ///
    /// What only takes away limits (a controller that cannot be enabled) is no error here but stands in
    /// [`CgroupRoot::problems`].
    ///
    /// # Errors
    /// No cgroup v2, or its tree cannot be written to: then there are no cgroups for units at all.
    pub fn set_up(place: Place<'_>) -> Result<Self, CgroupError> {
        let mountinfo = Path::new("/proc/self/mountinfo");
        let mount = detect::find_mount().map_err(|e| CgroupError::access("read", mountinfo, e))?;
        let mount = mount.ok_or(CgroupError::NotMounted)?;
        let own = detect::of_process(std::process::id())
            .map_err(|e| CgroupError::access("read", Path::new("/proc/self/cgroup"), e))?
            .ok_or(CgroupError::NotMounted)?;
        let mut root = Self::of(&mount, &own, place);
        make_folder(&root.folder)?;
        let scope = root.folder.join(INIT_SCOPE);
        make_folder(&scope)?;
        if place == Place::Whole && is_below_a_root(&root.folder) {
            move_all(&root.folder, &scope)?;
        }
        move_one(&scope, std::process::id())?;
        if root.start != root.folder {
            root.enable(&root.start.clone());
        }
        root.enable(&root.folder.clone());
        let control = root.folder.join("cgroup.subtree_control");
        root.enforceable = Enforceable::parse(&read(&control)?);
        Ok(root)
    }

    fn of(mount: &Mount, own: &str, place: Place<'_>) -> Self {
        let base = base_of(own, place).trim_end_matches('/');
        let cgroup = match place {
            Place::Whole => base.to_owned(),
            Place::Folder(name) => format!("{base}/{name}"),
        };
        Self {
            start: detect::folder_of(mount, base),
            folder: detect::folder_of(mount, &cgroup),
            cgroup,
            layout: mount.layout,
            enforceable: Enforceable::default(),
            problems: Vec::new(),
            slices: HashMap::new(),
        }
    }

    /// Where it is in the file system.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the machine mounts its cgroups.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Which limits hold.
    #[must_use]
    pub fn enforceable(&self) -> Enforceable {
        self.enforceable
    }

    /// Why the others do not.
    #[must_use]
    pub fn problems(&self) -> &[CgroupError] {
        &self.problems
    }

    /// Makes the cgroup of a unit, or finds the one that a former life has left (see [`Leaf::is_populated`]). One
    /// that was left frozen is thawed: a process that is born into it would never get to its exec.
    /// `slice` is a name such as `system.slice`; `a-b.slice` lies in `a.slice`.
    ///
    /// # Errors
    /// EACCES, EROFS, ENOSPC (`cgroup.max.descendants`), EAGAIN (`cgroup.max.depth`).
    pub fn leaf(&mut self, slice: &str, unit: &str) -> Result<Leaf, CgroupError> {
        let (made, leaf) = self.find_leaf(slice, unit)?;
        if !made {
            leaf.thaw()?;
        }
        Ok(leaf)
    }

    /// The same as [`CgroupRoot::leaf`], for one whose processes are to stand still if they do.
    ///
    /// # Errors
    /// As [`CgroupRoot::leaf`].
    pub fn leaf_as_left(&mut self, slice: &str, unit: &str) -> Result<Leaf, CgroupError> {
        self.find_leaf(slice, unit).map(|(_, leaf)| leaf)
    }

    /// The cgroup of a unit, and whether it was made just now.
    fn find_leaf(&mut self, slice: &str, unit: &str) -> Result<(bool, Leaf), CgroupError> {
        let slice = self.slice(slice)?;
        let within = format!("{slice}/{unit}");
        let folder = detect::join(&self.folder, &within);
        let cgroup = format!("{}/{within}", self.cgroup);
        Ok(match self.slices.get(&slice) {
            Some(above) => {
                (make_below(above, unit, &folder)?, Leaf::open_below(above, unit, folder, cgroup)?)
            }
            None => (make_folder(&folder)?, Leaf::open(folder, cgroup)?),
        })
    }

    /// The path of a slice's cgroup, if there is one.
    #[must_use]
    pub fn cgroup_of(&self, slice: &str) -> Option<String> {
        let within = slice_chain(slice).join("/");
        if within.is_empty() {
            return Some(if self.cgroup.is_empty() { "/".to_owned() } else { self.cgroup.clone() });
        }
        self.slices.contains_key(&within).then(|| format!("{}/{within}", self.cgroup))
    }

    /// The slices from the first below the root to this one: `a.slice`, `a-b.slice` for `a-b.slice`.
    pub fn slices_to(slice: &str) -> impl Iterator<Item = String> + use<> {
        slice_chain(slice).into_iter()
    }

    /// Gives a slice's cgroup these limits, and the kernel's defaults for what they do not set; makes it if it is not
    /// there.
    ///
    /// # Errors
    /// As [`CgroupRoot::leaf`], and as [`Leaf::limit`].
    pub fn limit_slice(&mut self, slice: &str, limits: &Limits) -> Result<(), CgroupError> {
        let folder = detect::join(&self.folder, &slice_chain(slice).join("/"));
        let was_there = folder.exists();
        let within = self.slice(slice)?;
        let Some(held) = self.slices.get(&within) else { return Ok(()) };
        let leaf = Leaf::open_below(held, ".", folder, format!("{}/{within}", self.cgroup))?;
        // One that was made just now has the defaults.
        match was_there {
            true => leaf.limit(&limits.clone().or_defaults(), self.enforceable),
            false => leaf.limit(limits, self.enforceable),
        }
    }

    /// Removes a slice's cgroup if nothing is in it. It is made again when something is to live there.
    ///
    /// # Errors
    /// As [`Leaf::remove_empty`].
    pub fn remove_slice(&mut self, slice: &str) -> Result<Removal, CgroupError> {
        let within = slice_chain(slice).join("/");
        if within.is_empty() || !self.slices.contains_key(&within) {
            return Ok(Removal::Removed);
        }
        let removal = remove_empty(&detect::join(&self.folder, &within))?;
        if removal == Removal::Removed {
            self.slices.remove(&within);
        }
        Ok(removal)
    }

    /// The unit that a process belongs to by its cgroup path: `SLICE/…/UNIT` below our root is UNIT. None: it is
    /// not one of ours.
    #[must_use]
    pub fn unit_of<'p>(&self, cgroup: &'p str) -> Option<&'p str> {
        let within = cgroup.strip_prefix(&self.cgroup)?.strip_prefix('/')?;
        let mut parts = within.split('/').skip_while(|part| part.ends_with(".slice"));
        parts.next().filter(|unit| *unit != INIT_SCOPE && !unit.is_empty())
    }

    /// The way of the manager back to the cgroup that it was started in; none if it has never left that. The kernel takes
    /// tens of milliseconds for it, so a thread can go it while units still stop.
    #[must_use]
    pub fn way_back(&self) -> Option<WayBack> {
        (self.start != self.folder).then(|| WayBack(self.start.clone()))
    }

    /// For the end of a manager that leaves nothing behind: it goes back to the cgroup that it was started in, and
    /// what is empty of its part is removed. What is still used stays, and so does everything of [`Place::Whole`].
    pub fn leave(self) {
        if self.way_back().is_some_and(|way| way.go()) {
            self.remove();
        }
    }

    /// The same for a manager that has gone its way back, and for nobody else: it removes what is empty.
    pub fn remove(self) {
        let mut folders: Vec<PathBuf> =
            self.slices.keys().map(|slice| detect::join(&self.folder, slice)).collect();
        folders.extend([self.folder.join(INIT_SCOPE), self.folder]);
        // The deepest first.
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            // EBUSY: somebody lives in it; ENOENT: somebody was faster.
            let _kept = fs::remove_dir(folder);
        }
    }

    /// Makes the slices down to this one, each with its controllers, and gives the path below our root.
    fn slice(&mut self, slice: &str) -> Result<String, CgroupError> {
        let mut within = String::new();
        for part in slice_chain(slice) {
            if !within.is_empty() {
                within.push('/');
            }
            within.push_str(&part);
            if self.slices.contains_key(&within) {
                continue;
            }
            let folder = detect::join(&self.folder, &within);
            make_folder(&folder)?;
            self.enable(&folder);
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let held = nix::fcntl::open(&folder, flags, Mode::empty())
                .map_err(|errno| CgroupError::access("open", &folder, errno.into()))?;
            self.slices.insert(within.clone(), held);
        }
        Ok(within)
    }

    /// Enables for the children of a cgroup whatever it has itself, one by one, as the kernel takes all or none.
    fn enable(&mut self, folder: &Path) {
        let available = match read(&folder.join("cgroup.controllers")) {
            Ok(names) => Enforceable::parse(&names),
            Err(problem) => return self.problems.push(problem),
        };
        let control = folder.join("cgroup.subtree_control");
        let enabled = read(&control).map(|names| Enforceable::parse(&names)).unwrap_or_default();
        for controller in available.controllers().filter(|controller| !enabled.has(*controller)) {
            let value = format!("+{}", controller.name());
            if let Err(problem) = write(&control, &value) {
                self.problems.push(problem);
            }
        }
    }
}

/// See [`CgroupRoot::way_back`].
#[derive(Debug)]
pub struct WayBack(PathBuf);

impl WayBack {
    /// Moves the whole program. False: the kernel refuses, as where that cgroup gives controllers to those below it.
    #[must_use]
    pub fn go(&self) -> bool {
        move_one(&self.0, std::process::id()).is_ok()
    }
}

/// The cgroup to begin in: our own, or the one above the `init.scope` that a former life has moved us to.
fn base_of<'p>(own: &'p str, place: Place<'_>) -> &'p str {
    let Some(above) = own.strip_suffix(INIT_SCOPE).and_then(|own| own.strip_suffix('/')) else { return own };
    match place {
        Place::Whole => above,
        Place::Folder(name) => above.strip_suffix(name).and_then(|own| own.strip_suffix('/')).unwrap_or(own),
    }
}

/// `a-b-c.slice` lies in `a-b.slice`, which lies in `a.slice`: systemd.slice(5). `-.slice` is the root.
fn slice_chain(slice: &str) -> Vec<String> {
    let stem = slice.strip_suffix(".slice").unwrap_or(slice);
    if stem.is_empty() || stem == "-" {
        return Vec::new();
    }
    let ends = stem.match_indices('-').map(|(at, _)| at).chain([stem.len()]);
    ends.filter_map(|end| stem.get(..end)).map(|part| format!("{part}.slice")).collect()
}

/// The root of all cgroups has no type and may have processes beside children; a container's root may not.
fn is_below_a_root(folder: &Path) -> bool {
    folder.join("cgroup.type").exists()
}

/// Makes a cgroup. False: it was there.
fn make_folder(folder: &Path) -> Result<bool, CgroupError> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(CgroupError::access("make", folder, e)),
    }
}

/// Makes a cgroup in one that is held. False: it was there.
fn make_below(above: &OwnedFd, name: &str, shown: &Path) -> Result<bool, CgroupError> {
    match mkdirat(above, name, Mode::from_bits_truncate(0o777)) {
        Ok(()) => Ok(true),
        Err(Errno::EEXIST) => Ok(false),
        Err(errno) => Err(CgroupError::access("make", shown, errno.into())),
    }
}

/// How often a list of processes is read again for those that were born meanwhile.
const ROUNDS: usize = 16;

/// Moves every process of a cgroup, until none is left or those that stay cannot be moved.
fn move_all(from: &Path, to: &Path) -> Result<(), CgroupError> {
    for _ in 0..ROUNDS {
        // 0 stands for a process outside of our pid namespace, which has no number here.
        let pids: Vec<u32> = read_pids(from)?.into_iter().filter(|pid| *pid != 0).collect();
        if pids.is_empty() {
            break;
        }
        for pid in pids {
            move_one(to, pid)?;
        }
    }
    Ok(())
}

/// Moves a process, threads and all. One that is gone is no error.
fn move_one(to: &Path, pid: u32) -> Result<(), CgroupError> {
    match write(&to.join("cgroup.procs"), &pid.to_string()) {
        Err(e) if e.errno() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

/// The numbers in `cgroup.procs`.
fn read_pids(folder: &Path) -> Result<Vec<u32>, CgroupError> {
    Ok(read(&folder.join("cgroup.procs"))?.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Reads a file of the tree.
fn read(path: &Path) -> Result<String, CgroupError> {
    fs::read_to_string(path).map_err(|e| CgroupError::access("read", path, e))
}

/// Writes a file of the tree. It is not created: a file that is missing is the kernel's word on a controller.
fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    let file = fs::File::options().write(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|e| CgroupError::write(path, value, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_nest_by_their_names() {
        for (slice, chain) in [
            ("system.slice", vec!["system.slice"]),
            ("a-b-c.slice", vec!["a.slice", "a-b.slice", "a-b-c.slice"]),
            ("-.slice", vec![]),
        ] {
            assert_eq!(slice_chain(slice), chain, "{slice}");
        }
    }

    #[test]
    fn a_manager_that_is_started_again_finds_its_part() {
        for (own, place, base) in [
            ("/", Place::Whole, "/"),
            ("/init.scope", Place::Whole, ""),
            ("/x", Place::Whole, "/x"),
            ("/x/init.scope", Place::Whole, "/x"),
            ("/x", Place::Folder("agentd"), "/x"),
            ("/x/agentd/init.scope", Place::Folder("agentd"), "/x"),
            ("/agentd/init.scope", Place::Folder("agentd"), ""),
            ("/x/init.scope", Place::Folder("agentd"), "/x/init.scope"),
            ("/my-init.scope", Place::Whole, "/my-init.scope"),
        ] {
            assert_eq!(base_of(own, place), base, "{own} {place:?}");
        }
    }

    #[test]
    fn controllers_are_read_by_name() {
        let all = Enforceable::parse("cpuset cpu io memory hugetlb pids rdma misc\n");
        assert!(Controller::ALL.into_iter().all(|controller| all.has(controller)));
        let some = Enforceable::parse("pids");
        assert_eq!(some.controllers().collect::<Vec<_>>(), [Controller::Pids]);
        assert_eq!(Enforceable::parse(""), Enforceable::default());
    }

    #[test]
    fn a_path_names_its_unit() {
        let root = |cgroup: &str| CgroupRoot {
            start: "/m".into(),
            folder: "/m".into(),
            cgroup: cgroup.into(),
            layout: Layout::Unified,
            enforceable: Enforceable::default(),
            problems: vec![],
            slices: HashMap::new(),
        };
        for (base, path, unit) in [
            ("", "/system.slice/a.service", Some("a.service")),
            ("", "/a.slice/a-b.slice/x@1.service/sub/deep", Some("x@1.service")),
            ("", "/init.scope", None),
            ("", "/", None),
            ("", "/system.slice", None),
            ("/own", "/own/system.slice/a.service", Some("a.service")),
            ("/own", "/other/system.slice/a.service", None),
            ("/own", "/own2/system.slice/a.service", None),
        ] {
            assert_eq!(root(base).unit_of(path), unit, "{base} {path}");
        }
    }
}
