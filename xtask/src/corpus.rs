//! The unit files of Debian packages, which nobody here wrote: what people will bring.
//!
//! They are fetched when the tests run and kept in the cache outside of the repository, by version of the package.

use std::path::PathBuf;

use crate::error::{During, Result};
use crate::image::base::cache_folder;
use crate::run::{cargo, command, run};
use crate::scratch::Scratch;
use crate::tools;

const FETCH: &str = include_str!("corpus/fetch.sh");

/// The packages: system daemons, servers, desktops' helpers and systemd itself. At least 60 of them have unit files.
const PACKAGES: &str = "\
    acpid anacron apache2 apt avahi-daemon bind9 bluez chrony clamav-daemon clamav-freshclam cockpit-ws colord \
    containerd cron cups-browsed cups-daemon dbus dnsmasq docker.io dovecot-core e2fsprogs exim4-base fail2ban fwupd \
    haproxy haveged iio-sensor-proxy irqbalance isc-dhcp-server keepalived knot libvirt-daemon-system lighttpd \
    logrotate lvm2 man-db mariadb-server mdadm memcached modemmanager mosquitto munin-node network-manager nfs-common \
    nfs-kernel-server nftables nginx-common nscd ntpsec open-iscsi openssh-server openvpn packagekit pcscd plymouth \
    polkitd postfix postgresql-common prometheus prometheus-node-exporter radvd redis-sentinel redis-server rng-tools5 \
    rpcbind rsync rsyslog samba slapd smartmontools snmpd squid stunnel4 sysstat systemd systemd-resolved \
    systemd-timesyncd tor udev udisks2 unattended-upgrades unbound upower uuid-runtime vsftpd wpasupplicant xinetd \
    zabbix-agent";

/// Reads all of them and holds them to the rules of the example `corpus` of `agentd-unit`.
///
/// # Errors
/// A package cannot be fetched, or a file breaks a rule; each was printed.
pub fn check() -> Result<()> {
    let (_set, packages) = fetch()?;
    let example = ["run", "--quiet", "--package", "agentd-unit", "--example", "corpus", "--"];
    run(cargo(&example).arg(packages))
}

/// Fetches what is not in the cache: a folder with one folder of files a package, which goes with the first of the two.
///
/// # Errors
/// A package cannot be fetched.
pub fn fetch() -> Result<(Scratch, PathBuf)> {
    tools::need(tools::CORPUS)?;
    let set = Scratch::new("corpus")?;
    let script = set.path().join("fetch.sh");
    std::fs::write(&script, FETCH).during(|| format!("cannot write {}", script.display()))?;
    let packages = set.path().join("packages");
    std::fs::create_dir(&packages).during(|| format!("cannot make {}", packages.display()))?;
    let cache = cache_folder()?.join("corpus");
    let words: [PathBuf; 3] = [script, cache, packages.clone()];
    run(command("bash", &[]).args(words).args(PACKAGES.split_ascii_whitespace()))?;
    Ok((set, packages))
}
