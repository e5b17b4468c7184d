//! The page of keys is what the code has.

use std::path::Path;

use agentd_unit::schema;

#[test]
fn the_page_of_keys_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    let page = schema::keys_page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("a page that can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/keys.md is stale; run: UPDATE=1 cargo test -p agentd-unit --test keys_page");
}

#[test]
fn the_page_has_each_key_with_its_state() {
    let page = schema::keys_page();
    for row in [
        "| `ExecStart` | command |  | applied | systemd.service(5) | The main process; several only for Type=oneshot |",
        "| `RestartSec` | span of time | 100 ms | applied | systemd.service(5) | How long a restart waits |",
        "| `ListenStream` | address, or a list of them |  | applied | systemd.socket(5) |",
        "| `CPUShares` | | | not supported: it belongs to cgroup v1, and agentd uses v2 alone | systemd.resource-control(5) | |",
        "| `Cron` | cron expression, or a list of them |  | applied | agentd |",
    ] {
        assert!(page.contains(row), "{row}\n{page}");
    }
}
