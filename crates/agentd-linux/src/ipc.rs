//! What a user has left of System V and POSIX IPC: sysvipc(7), shm_overview(7), mq_overview(7).
//!
//! # Invariants
//!
//! - What somebody is attached to stays: the kernel keeps it for him anyway, and takes it away after the last.
//! - No link is followed: the folders are open to all.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Whose objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Of a user.
    User(u32),
    /// Of a group.
    Group(u32),
}

impl Owner {
    fn has(self, uid: u32, gid: u32) -> bool {
        match self {
            Self::User(id) => id == uid,
            Self::Group(id) => id == gid,
        }
    }
}

/// Where POSIX objects are files.
const FOLDERS: [&str; 2] = ["/dev/shm", "/dev/mqueue"];

/// How deep folders in `/dev/shm` are looked into: each level costs a descriptor.
const DEPTH: u32 = 16;

/// Removes all objects of an owner; how many there were, and what could not be removed.
#[must_use]
pub fn remove(owner: Owner) -> (usize, Vec<(String, io::Error)>) {
    let mut removal = Removal { owner, removed: 0, failed: Vec::new() };
    for (kind, end) in
        [("shm", end_shared_memory as fn(i32) -> i32), ("sem", end_semaphores), ("msg", end_queue)]
    {
        removal.system_v(kind, end);
    }
    for folder in FOLDERS {
        // A machine without one has no objects of its kind.
        if let Ok(mut dir) = Dir::open(folder, folder_flags(), Mode::empty()) {
            removal.posix(&mut dir, folder, DEPTH);
        }
    }
    (removal.removed, removal.failed)
}

struct Removal {
    owner: Owner,
    removed: usize,
    failed: Vec<(String, io::Error)>,
}

impl Removal {
    fn note(&mut self, name: String, outcome: nix::Result<()>) {
        match outcome {
            Ok(()) => self.removed += 1,
            // Somebody else was faster.
            Err(Errno::ENOENT | Errno::EIDRM | Errno::EINVAL) => {}
            Err(errno) => self.failed.push((name, errno.into())),
        }
    }

    /// `/proc/sysvipc`: a table, whose head names its columns.
    fn system_v(&mut self, kind: &str, end: fn(i32) -> i32) {
        let Ok(table) = fs::read_to_string(format!("/proc/sysvipc/{kind}")) else { return };
        for id in objects(&table, kind, self.owner) {
            self.note(format!("{kind} {id}"), Errno::result(end(id)).map(drop));
        }
    }

    fn posix(&mut self, dir: &mut Dir, path: &str, depth: u32) {
        let entries: Vec<_> = dir.iter().filter_map(Result::ok).collect();
        for entry in entries {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = fstatat(dir.as_fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            let full = format!("{path}/{}", name.to_string_lossy());
            let is_folder =
                entry.file_type().map_or_else(|| is_folder(&stat), |kind| kind == Type::Directory);
            if is_folder
                && depth > 0
                && let Ok(mut below) = Dir::openat(dir.as_fd(), name, folder_flags(), Mode::empty())
            {
                self.posix(&mut below, &full, depth - 1);
            }
            if self.owner.has(stat.st_uid, stat.st_gid) {
                let flag = if is_folder { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
                match unlinkat(dir.as_fd(), name, flag) {
                    // What is another's in it stays, and so does it.
                    Err(Errno::ENOTEMPTY) => {}
                    outcome => self.note(full, outcome),
                }
            }
        }
    }
}

fn is_folder(stat: &FileStat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFDIR
}

fn folder_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK
}

/// The ids of the objects in a table that are the owner's, without shared memory that somebody is attached to.
fn objects(table: &str, kind: &str, owner: Owner) -> Vec<i32> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let column = |name: &str| head.iter().position(|word| *word == name);
    // Of message queues it is `msqid`.
    let id = head.iter().position(|word| word.ends_with("id") && word.starts_with(&kind[..2]));
    let (Some(id), Some(uid), Some(gid)) = (id, column("uid"), column("gid")) else {
        return Vec::new();
    };
    let attached = column("nattch");
    let mut found = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |column: usize| words.get(column).and_then(|word| word.parse::<u32>().ok());
        let is_free = attached.is_none_or(|column| number(column) == Some(0));
        if is_free && number(uid).zip(number(gid)).is_some_and(|(uid, gid)| owner.has(uid, gid)) {
            found.extend(words.get(id).and_then(|word| word.parse::<i32>().ok()));
        }
    }
    found
}

/// shmctl(2) IPC_RMID.
fn end_shared_memory(id: i32) -> i32 {
    // SAFETY: with this command the call reads no buffer.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }
}

/// semctl(2) IPC_RMID.
fn end_semaphores(id: i32) -> i32 {
    // SAFETY: with this command the call takes no fourth argument.
    unsafe { libc::semctl(id, 0, libc::IPC_RMID) }
}

/// msgctl(2) IPC_RMID.
fn end_queue(id: i32) -> i32 {
    // SAFETY: with this command the call reads no buffer.
    unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHM: &str = "\
       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         0          5  1600                  4096   700   700      0  1000   100  1000   100          0          0 1700000000                     0                     0
         0          6  1600                  4096   700   700      2  1000   100  1000   100          0          0 1700000000                     0                     0
         7          8   600                  4096   700   700      0     0     0     0     0          0          0 1700000000                     0                     0
";

    #[test]
    fn free_objects_of_the_owner_are_found_in_the_kernels_table() {
        assert_eq!(objects(SHM, "shm", Owner::User(1000)), [5], "6 has somebody attached");
        assert_eq!(objects(SHM, "shm", Owner::Group(100)), [5]);
        assert_eq!(objects(SHM, "shm", Owner::User(1001)), [0; 0]);
        let queues = "key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime\n0 3 644 0 0 0 0 7 8 7 8 0 0 1\n";
        assert_eq!(objects(queues, "msg", Owner::User(7)), [3]);
        assert_eq!(objects("", "msg", Owner::User(7)), [0; 0]);
    }
}
