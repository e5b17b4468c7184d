//! The walls around a service as they count in the end: what its files say, what `[Agent] Sandbox` and `DynamicUser` add,
//! and defaults. For `show` and for `analyze security`.

use std::path::PathBuf;

use crate::schema::printed::{octal, tasks, text, yes_no};
use crate::sections::{LimitedResource, Sandbox, SandboxPath, ServiceSection, SystemCalls};
use crate::values::capability;
use crate::values::syscalls::{ALL_NAMESPACES, denial_name, family_name, namespace_names};
use crate::words::Words;

/// Keys of `[Service]` with their values, as a unit file would have them. Empty: not restricted, or none.
#[must_use]
pub fn sandbox(service: &ServiceSection) -> Vec<(&'static str, String)> {
    let mut keys = identity(service);
    keys.extend(view(&service.sandbox));
    keys.extend(kernel(&service.sandbox));
    keys.push(("DevicePolicy", service.device_policy().as_word().to_owned()));
    keys
}

fn identity(service: &ServiceSection) -> Vec<(&'static str, String)> {
    let how = &service.execution;
    let mask = service.capability_bounding_set.unwrap_or(capability::ALL);
    let processes = how.limits.iter().find(|limit| limit.resource == LimitedResource::Nproc);
    vec![
        ("User", service.user.clone().unwrap_or_default()),
        ("DynamicUser", yes_no(how.dynamic_user)),
        ("NoNewPrivileges", yes_no(service.no_new_privileges)),
        ("CapabilityBoundingSet", capability::names(mask).join(" ")),
        ("AmbientCapabilities", capability::names(service.ambient_capabilities).join(" ")),
        ("UMask", octal(how.umask)),
        ("StateDirectory", paths(&service.state_directory)),
        ("StateDirectoryMode", octal(how.state_directory_mode)),
        ("RootDirectory", how.root_directory.as_deref().map(text).unwrap_or_default()),
        ("LimitNPROC", processes.map_or_else(String::new, |limit| limit.soft.to_string())),
        ("TasksMax", tasks(service.tasks_max.as_ref())),
    ]
}

fn view(sandbox: &Sandbox) -> Vec<(&'static str, String)> {
    vec![
        ("ProtectSystem", sandbox.protect_system.as_word().to_owned()),
        ("ProtectHome", sandbox.protect_home.as_word().to_owned()),
        ("PrivateTmp", yes_no(sandbox.private_tmp)),
        ("PrivateDevices", yes_no(sandbox.private_devices)),
        ("PrivateIPC", yes_no(sandbox.private_ipc)),
        ("PrivateNetwork", yes_no(sandbox.private_network)),
        ("PrivateUsers", sandbox.private_users.as_word().to_owned()),
        ("PrivatePIDs", yes_no(sandbox.private_pids)),
        ("PrivateMounts", yes_no(sandbox.private_mounts)),
        ("RemoveIPC", yes_no(sandbox.remove_ipc)),
        ("ProtectProc", sandbox.protect_proc.as_word().to_owned()),
        ("ProcSubset", if sandbox.proc_of_processes { "pid" } else { "all" }.to_owned()),
        ("ProtectKernelTunables", yes_no(sandbox.protect_kernel_tunables)),
        ("ProtectKernelModules", yes_no(sandbox.protect_kernel_modules)),
        ("ProtectKernelLogs", yes_no(sandbox.protect_kernel_logs)),
        ("ProtectControlGroups", yes_no(sandbox.protect_control_groups)),
        ("ProtectClock", yes_no(sandbox.protect_clock)),
        ("ProtectHostname", yes_no(sandbox.protect_hostname)),
        ("ReadWritePaths", sandbox_paths(&sandbox.read_write)),
        ("ReadOnlyPaths", sandbox_paths(&sandbox.read_only)),
        ("NoExecPaths", sandbox_paths(&sandbox.no_exec)),
        ("ExecPaths", sandbox_paths(&sandbox.exec)),
        ("InaccessiblePaths", sandbox_paths(&sandbox.inaccessible)),
    ]
}

fn kernel(sandbox: &Sandbox) -> Vec<(&'static str, String)> {
    let families = sandbox.address_families.as_ref().map_or_else(String::new, |list| {
        let names: Vec<String> = list.families.iter().map(|number| family_name(*number)).collect();
        match (list.allow, names.is_empty()) {
            (true, true) => "none".to_owned(),
            (true, false) => names.join(" "),
            (false, _) => format!("~{}", names.join(" ")),
        }
    });
    let namespaces = match sandbox.namespaces {
        None => "no".to_owned(),
        Some(0) => "yes".to_owned(),
        Some(allowed) => namespace_names(allowed & ALL_NAMESPACES).join(" "),
    };
    vec![
        ("RestrictNamespaces", namespaces),
        ("RestrictRealtime", yes_no(sandbox.restrict_realtime)),
        ("RestrictSUIDSGID", yes_no(sandbox.restrict_suid_sgid)),
        ("LockPersonality", yes_no(sandbox.lock_personality)),
        ("MemoryDenyWriteExecute", yes_no(sandbox.deny_write_execute)),
        ("RestrictAddressFamilies", families),
        ("SystemCallArchitectures", if sandbox.native_calls { "native" } else { "" }.to_owned()),
        ("SystemCallFilter", sandbox.system_calls.as_ref().map(calls).unwrap_or_default()),
        ("SystemCallLog", sandbox.logged_calls.as_ref().map(calls).unwrap_or_default()),
        ("SystemCallErrorNumber", sandbox.system_call_error.map_or_else(String::new, denial_name)),
    ]
}

fn calls(list: &SystemCalls) -> String {
    let one = |(call, denial): (&&'static str, &Option<_>)| match denial {
        Some(denial) => format!("{call}:{}", denial_name(*denial)),
        None => (*call).to_owned(),
    };
    let names: Vec<String> = list.calls.iter().map(one).collect();
    format!("{}{}", if list.allow { "" } else { "~" }, names.join(" "))
}

fn paths(list: &[PathBuf]) -> String {
    list.iter().map(|path| text(path)).collect::<Vec<_>>().join(" ")
}

fn sandbox_paths(list: &[SandboxPath]) -> String {
    let one = |path: &SandboxPath| format!("{}{}", if path.optional { "-" } else { "" }, text(&path.path));
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}
