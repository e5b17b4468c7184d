//! Which devices and addresses the processes of a unit reach, tried by the processes. Each case runs with and without its keys.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::process::Command;

use common::cases::{case, check_all, is_root};
use common::{Setup, text};

fn leaked(script: String) -> &'static str {
    Box::leak(script.into_boxed_str())
}

#[test]
fn devices_are_for_those_that_may_use_them() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("devices");
    // The kernel's log by another name, where PrivateDevices does not hide it.
    let node = setup.path("node").display().to_string();
    assert!(Command::new("mknod").args([&node, "c", "1", "11"]).status().unwrap().success());
    let other = leaked(format!("(: < {node}) 2>&1"));
    let make = "f=$(mktemp -u); : < /dev/kmsg && echo kmsg; mknod $f c 1 11 2>&1; rm -f $f";
    let cases = [
        case(
            "closed",
            "DevicePolicy = \"closed\"",
            "(: < /dev/kmsg) 2>&1; : < /dev/zero && echo zero",
            "kmsg: Operation not permitted\nzero\n",
        ),
        case(
            "strict",
            "DevicePolicy = \"strict\"\nDeviceAllow = \"/dev/zero r\"",
            ": < /dev/zero && echo read; (: > /dev/zero) 2>&1; (: < /dev/full) 2>&1",
            "read\n/bin/sh: 1: cannot create /dev/zero: Operation not permitted\n/bin/sh: 1: cannot open /dev/full: Operation not permitted",
        ),
        case("driver", "DeviceAllow = \"char-mem rw\"", make, "Operation not permitted"),
        case("node", "DeviceAllow = [\"/dev/full\", \"char-p*\"]", other, "Operation not permitted"),
        case("private", "PrivateDevices = true", other, "Operation not permitted"),
    ];
    check_all(setup, &cases);
}

/// Sends a datagram from one address to another and says what became of it.
const SEND: &str = r"
import socket, sys
for pair in sys.argv[1:]:
    source, target = pair.split('>')
    family = socket.AF_INET6 if ':' in target else socket.AF_INET
    hears, says = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
    hears.setblocking(False)
    try:
        hears.bind((target, 0))
    except OSError:
        pass
    try:
        says.bind((source, 0))
        says.sendto(b'x', (target, hears.getsockname()[1] or 9))
        print('heard' if hears.recv(1) else 'nothing')
    except PermissionError:
        print('denied')
    except BlockingIOError:
        print('lost')
    except OSError as error:
        print(error)
";

#[test]
fn addresses_are_for_those_that_may_talk_to_them() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("addresses");
    let program = setup.file("send.py", SEND).display().to_string();
    let send = |pairs: &str| leaked(format!("python3 {program} {pairs}"));
    let mut cases = vec![
        case("one", "IPAddressDeny = \"127.0.0.1\"", send("'127.0.0.1>127.0.0.1'"), "denied\n"),
        case("ingress", "IPAddressDeny = \"127.0.0.2\"", send("'127.0.0.2>127.0.0.1'"), "lost\n"),
        case(
            "bits",
            "IPAddressDeny = \"127.0.0.4/30\"",
            send("'127.0.0.1>127.0.0.7' '127.0.0.1>127.0.0.8' '127.0.0.1>127.0.0.3'"),
            "denied\nheard\nheard\n",
        ),
        case(
            "allowed",
            "IPAddressDeny = \"any\"\nIPAddressAllow = \"localhost\"",
            send("'127.0.0.1>127.0.0.1' '0.0.0.0>192.0.2.1'"),
            "heard\ndenied\n",
        ),
    ];
    if std::fs::read_to_string("/proc/net/if_inet6")
        .is_ok_and(|all| all.contains("00000000000000000000000000000001"))
    {
        let deny = "IPAddressDeny = \"::1/128\"";
        cases.push(case("six", deny, send("'::1>::1' '127.0.0.1>127.0.0.1'"), "denied\nheard\n"));
        let any = "IPAddressDeny = \"any\"\nIPAddressAllow = \"::/64\"";
        cases.push(case("six-allowed", any, send("'::1>::1' '127.0.0.1>127.0.0.1'"), "heard\ndenied\n"));
    }
    check_all(setup, &cases);
}

#[test]
fn walls_that_cannot_be_built_are_told() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("walls-told").without_cgroups();
    let unit = |name: &str, keys: &str, agent: &str| {
        let text = format!("{agent}\n[Service]\nType = \"oneshot\"\nExecStart = \"/bin/true\"\n{keys}\n");
        setup.unit(&format!("{name}.service"), &text);
    };
    let keys = "DevicePolicy = \"closed\"\nIPAddressDeny = \"any\"";
    unit("told", keys, "");
    unit("requires", keys, "[Agent]\nRequireLimits = true");
    unit("comes-along", "PrivateDevices = true", "[Agent]\nRequireLimits = true");
    let mut manager = setup.start();
    manager.ok(&["start", "told"]);
    manager.wait_for_log(
        "DevicePolicy, IPAddressDeny is not enforced here: units have no cgroups here",
        "it is not told",
    );
    let page = text(&manager.ctl(&["status", "told"]));
    assert!(page.contains("Warning: IPAddressDeny is not enforced: units have no cgroups here"), "{page}");
    let refused = text(&manager.ctl(&["start", "requires"]));
    assert!(
        refused.contains("RequireLimits: DevicePolicy, IPAddressDeny cannot be enforced here"),
        "{refused}"
    );
    manager.ok(&["start", "comes-along"]);
}
