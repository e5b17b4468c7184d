//! The manager of a user without any privilege, in the folders that the user's environment names.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `nobody` everywhere.
const NOBODY: u32 = 65534;

/// A user of its own: home, runtime folder and the two programs, which stand where nobody may read.
struct User {
    folder: PathBuf,
    uid: u32,
}

impl User {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("agentd-test-{}-{name}", std::process::id()));
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        assert!(is_root || std::env::var_os("CI").is_none(), "this test needs root, to become another user");
        let user =
            Self { uid: if is_root { NOBODY } else { fs::metadata("/proc/self").unwrap().uid() }, folder };
        for part in ["", "bin", "home", "xdg", "home/.config/agentd/units"] {
            fs::create_dir_all(user.folder.join(part)).unwrap();
        }
        let built = Path::new(env!("CARGO_BIN_EXE_agentd"));
        for program in ["agentd", "agentctl"] {
            let place = user.folder.join("bin").join(program);
            fs::copy(built.with_file_name(program), &place).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(user.folder.join("xdg"), fs::Permissions::from_mode(0o700)).unwrap();
        user
    }

    fn unit(&self, name: &str, text: &str) {
        fs::write(self.folder.join(format!("home/.config/agentd/units/{name}.toml")), text).unwrap();
    }

    /// All that was made belongs to the user from now on.
    fn own(&self) {
        let mut waiting = vec![self.folder.clone()];
        while let Some(path) = waiting.pop() {
            chown(&path, Some(self.uid), Some(self.uid)).unwrap();
            if path.is_dir() {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join("bin").join(program));
        command.arg("--user").env_clear().env("HOME", self.folder.join("home")).env("PATH", "/usr/bin:/bin");
        command.env("XDG_RUNTIME_DIR", self.folder.join("xdg")).current_dir("/");
        if self.uid == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn ctl(&self, args: &[&str]) -> Output {
        self.command("agentctl").args(args).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn property(&self, unit: &str, name: &str) -> String {
        self.ok(&["show", "-p", name, unit]).trim().strip_prefix(&format!("{name}=")).unwrap().to_owned()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

#[expect(clippy::zombie_processes, reason = "whoever starts it waits for it")]
/// Starts the manager; the lines it says until its first unit is up.
fn start(user: &User) -> (Child, Vec<String>, BufReader<std::process::ChildStderr>) {
    let mut manager = user.command("agentd");
    let mut manager = manager.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(manager.stderr.take().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "the manager has ended: {lines:?}");
        let is_up = line.contains("Reached target default.target");
        lines.push(line);
        if is_up {
            return (manager, lines, said);
        }
    }
}

#[test]
fn an_unprivileged_user_has_agents_of_their_own() {
    let user = User::new("user");
    let pids = user.folder.join("home/pids");
    user.unit(
        "tree.service",
        &format!(
            "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"setsid sleep 1000 & echo $! > {0}; echo hello; id -u; exec sleep 1000\"]\n\
             StateDirectory = [\"tree\"]\nMemoryMax = \"1G\"\n[Install]\nWantedBy = [\"default.target\"]\n",
            pids.display()
        ),
    );
    user.unit("other.service", "[Service]\nUser = \"root\"\nExecStart = [\"/bin/sleep\", \"1000\"]\n");
    user.unit(
        "strict.service",
        "[Agent]\nSandbox = \"strict\"\n[Service]\nExecStart = \"/bin/sleep 1000\"\n",
    );
    user.own();
    let (mut manager, lines, said) = start(&user);
    // Its words must go somewhere while it lives.
    let rest = std::thread::spawn(move || said.lines().map_while(Result::ok).count());
    assert!(lines[0].contains("starts as user"), "{lines:?}");

    let lacking = user.ok(&["show", "tree", "-p", "LimitsNotEnforced", "-o", "json"]);
    assert!(
        lacking.contains("MemoryMax is not enforced: units have no cgroups with the controller memory"),
        "{lacking}"
    );
    let page = user.ok(&["status", "tree"]);
    assert!(page.contains("Warning: MemoryMax is not enforced"), "{page}");

    let main: u32 = user.property("tree", "MainPID").parse().unwrap();
    assert_eq!(fs::metadata(format!("/proc/{main}")).unwrap().uid(), user.uid);
    let state = user.folder.join("home/.local/state/tree");
    assert_eq!(
        fs::metadata(&state).unwrap().uid(),
        user.uid,
        "StateDirectory is below the user's state home"
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    while !user.ok(&["logs", "tree"]).contains(&user.uid.to_string()) {
        assert!(Instant::now() < deadline, "the agent's words are not kept");
    }

    let stranger = user.ctl(&["start", "other"]);
    assert_eq!(stranger.status.code(), Some(1), "only root can become another user: {stranger:?}");
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("other"), "{stranger:?}");
    let strict = user.ctl(&["start", "strict"]);
    assert_eq!(strict.status.code(), Some(1), "walls that cannot be built are not left out: {strict:?}");
    assert!(user.property("strict", "Failure").contains("only a manager that runs as root"));
    let power = user.ctl(&["poweroff"]);
    assert!(!power.status.success(), "the machine is not the user's: {power:?}");

    let helper: u32 = fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    user.ok(&["stop", "tree"]);
    for pid in [main, helper] {
        assert!(!is_alive(pid), "{pid} of the tree lives after the stop");
    }
    user.ok(&["start", "tree"]);
    let main: u32 = user.property("tree", "MainPID").parse().unwrap();
    let code = user.ctl(&["exit", "7"]);
    assert!(code.status.success(), "{code:?}");
    assert_eq!(manager.wait().unwrap().code(), Some(7));
    assert!(!is_alive(main), "an agent outlives the manager's exit");
    rest.join().unwrap();
}

/// Among users of its own a process may have the other namespaces; without them nothing is left out silently.
#[test]
fn walls_stand_in_a_user_manager_with_users_of_their_own() {
    let user = User::new("walls");
    let unit = |name: &str, keys: &str| {
        let script =
            "id -u; touch $HOME/x 2>/dev/null || echo shut; echo /proc/[0-9]*; wc -l < /proc/net/dev";
        let out = user.folder.join("home").join(format!("{name}.out"));
        let text = format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"{}\"]\nStandardOutput = \"truncate:{}\"\n{keys}\n",
            script.replace('$', "$$"),
            out.display()
        );
        user.unit(&format!("{name}.service"), &text);
    };
    let walls = format!("ReadOnlyPaths = \"{}\"\nPrivateNetwork = true", user.folder.display());
    unit("walls", &format!("{walls}\nPrivateUsers = true\nPrivatePIDs = true"));
    unit("bare", &walls);
    unit("pids", "PrivatePIDs = true");
    unit("mounts", "PrivateTmp = true");
    let nice = user.folder.join("home/nice");
    let told = format!("StandardOutput = \"truncate:{}\"", nice.display());
    user.unit(
        "nice.service",
        &format!("[Service]\nType = \"oneshot\"\nExecStart = \"/usr/bin/nice\"\nNice = -5\n{told}\n"),
    );
    user.own();
    let (mut manager, _, said) = start(&user);
    let rest = std::thread::spawn(move || said.lines().map_while(Result::ok).count());
    user.ok(&["start", "walls"]);
    let out = fs::read_to_string(user.folder.join("home/walls.out")).unwrap();
    // Itself alone; and the head of the table with the loopback device.
    assert_eq!(out, format!("{}\nshut\n/proc/1\n3\n", user.uid));
    for (name, failure, status) in [
        ("bare", "PrivateNetwork", "225"),
        ("pids", "cannot make namespaces of its own (PrivatePIDs)", "226"),
        ("mounts", "(PrivateTmp); without privileges that needs PrivateUsers=true", "226"),
    ] {
        assert_eq!(user.ctl(&["start", name]).status.code(), Some(1), "{name}");
        let told = user.property(name, "Failure");
        assert!(told.contains(failure) && told.contains("Operation not permitted"), "{told}");
        assert_eq!(user.property(name, "ExecMainStatus"), status, "{name}");
    }
    // So low a nice value is not the user's; it has the lowest that is.
    user.ok(&["start", "nice"]);
    assert_eq!(fs::read_to_string(&nice).unwrap(), "0\n");
    assert!(user.ctl(&["exit", "0"]).status.success());
    assert_eq!(manager.wait().unwrap().code(), Some(0));
    rest.join().unwrap();
}

/// Whether a process is there and no zombie.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
