//! Paths within a root.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder of its own, removed at the end.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("agentctl-root-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("usr/bin")).unwrap();
        fs::write(path.join("usr/bin/tool"), "x").unwrap();
        Self(path)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn links_lead_where_they_will_lead_on_the_machine() {
    let root = Root::new();
    for (link, target) in [
        ("bin", "/usr/bin"),
        ("usr/bin/relative", "../bin/tool"),
        ("usr/bin/chain", "/bin/relative"),
        ("usr/bin/out", "../../../../../../usr/bin/tool"),
    ] {
        symlink(target, root.0.join(link)).unwrap();
    }
    for path in
        ["/usr/bin/tool", "/bin/tool", "/bin/relative", "/usr/bin/chain", "/bin/out", "/./usr//bin/tool"]
    {
        assert_eq!(within(&root.0, Path::new(path)).unwrap(), root.0.join("usr/bin/tool"), "{path}");
    }
}

#[test]
fn a_link_out_of_the_root_leads_nowhere() {
    let root = Root::new();
    symlink("/proc/self/status", root.0.join("usr/bin/leak")).unwrap();
    let error = within(&root.0, Path::new("/usr/bin/leak")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_loop_of_links_is_an_error() {
    let root = Root::new();
    symlink("b", root.0.join("a")).unwrap();
    symlink("a", root.0.join("b")).unwrap();
    let error = within(&root.0, Path::new("/a")).unwrap_err();
    assert!(error.to_string().contains("too many levels"), "{error}");
}

#[test]
fn only_regular_files_are_read_and_a_device_keeps_nobody_waiting() {
    for path in ["/dev/zero", "/proc/self/fd"] {
        assert!(open(Path::new(path)).unwrap_err().to_string().contains("is no regular file"), "{path}");
    }
}
