//! A bundle for an OCI runtime (the runtime specification's `config.json` and `rootfs`): agentd as PID 1 of a container.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::base::Base;
use super::tree::Tree;
use crate::error::{During, Result};
use crate::run::{command, run};

/// What container engines give a container by default. An init needs no more: what is forbidden it skips.
const CAPABILITIES: [&str; 14] = [
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_RAW",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// Writes the bundle.
///
/// # Errors
/// The folder could not be written.
pub fn bundle(tree: &Tree, base: &Base, out: &Path) -> Result<()> {
    let merged = base.merged(tree)?;
    let rootfs = out.join("rootfs");
    if rootfs.exists() {
        fs::remove_dir_all(&rootfs).during(|| format!("cannot replace {}", rootfs.display()))?;
    }
    // Copies, not links: a container may write into its files.
    run(command("cp", &["-a", "--no-target-directory"]).arg(merged.path()).arg(&rootfs))?;
    // A container has its host's kernel.
    let modules = rootfs.join("usr/lib/modules");
    fs::remove_dir_all(&modules).during(|| format!("cannot remove {}", modules.display()))?;
    let config = out.join("config.json");
    fs::write(&config, format!("{:#}\n", config_json()))
        .during(|| format!("cannot write {}", config.display()))
}

fn config_json() -> Value {
    let namespaces: Vec<Value> =
        ["pid", "mount", "uts", "ipc", "network", "cgroup"].map(|kind| json!({ "type": kind })).to_vec();
    json!({
        "ociVersion": "1.0.2",
        "hostname": "agentd",
        "root": { "path": "rootfs", "readonly": false },
        "process": {
            "terminal": false,
            "cwd": "/",
            "user": { "uid": 0, "gid": 0 },
            "args": ["/sbin/init"],
            // How an init learns that it is in a container: https://systemd.io/CONTAINER_INTERFACE.
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=oci"],
            "capabilities": {
                "bounding": CAPABILITIES, "effective": CAPABILITIES, "permitted": CAPABILITIES
            },
            "noNewPrivileges": false
        },
        "mounts": mounts(),
        "linux": { "namespaces": namespaces, "resources": {} }
    })
}

fn mounts() -> Vec<Value> {
    let mount = |destination: &str, kind: &str, options: &[&str]| json!({ "destination": destination, "type": kind, "source": kind, "options": options });
    vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        mount("/dev/shm", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        mount("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime"]),
        mount("/run", "tmpfs", &["nosuid", "nodev", "mode=755"]),
        mount("/tmp", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
    ]
}
