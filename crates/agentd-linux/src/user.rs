//! Users and groups, read from passwd(5) and group(5).
//!
//! A static program has no NSS, and an init must not hang on a directory server, so the two files are all there is.
//! A name that is not found is an error, never root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The largest id that is a real one: 2³² − 1 means "leave as it is" to setuid and its kin.
const ID_MAX: u32 = u32::MAX - 1;

/// One line of passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name; the number as text where passwd has no line for it.
    pub name: String,
    /// The user id.
    pub uid: u32,
    /// The primary group's id.
    pub gid: u32,
    /// The home folder; `/` where passwd has no line.
    pub home: String,
    /// The shell; `/bin/sh` where passwd has none.
    pub shell: String,
}

/// Why an account cannot be found.
#[derive(Debug, Error)]
pub enum UserError {
    /// A database cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no such user.
    #[error("user '{0}' is not in /etc/passwd")]
    NoUser(String),
    /// There is no such group.
    #[error("group '{0}' is not in /etc/group")]
    NoGroup(String),
    /// A number that is no id.
    #[error("'{0}' is no user or group id")]
    BadId(String),
}

/// The two databases below some root, `/` for the running system.
#[derive(Debug, Clone)]
pub struct Accounts {
    passwd: PathBuf,
    group: PathBuf,
}

impl Default for Accounts {
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl Accounts {
    /// The databases in `ROOT/etc`.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self { passwd: root.join("etc/passwd"), group: root.join("etc/group") }
    }

    /// A user by name or number. A number needs no line in passwd; root needs none either.
    ///
    /// # Errors
    /// The name is unknown, the number no id, or passwd cannot be read.
    pub fn user(&self, text: &str) -> Result<User, UserError> {
        let number = number(text)?;
        let known = match read(&self.passwd) {
            Ok(table) => table.lines().filter_map(passwd_line).find(|user| match number {
                Some(uid) => user.uid == uid,
                None => user.name == text,
            }),
            // An image without passwd still has root and numbers.
            Err(_) if number.is_some() || text == "root" => None,
            Err(error) => return Err(error),
        };
        match (known, number) {
            (Some(user), _) => Ok(user),
            (None, Some(uid)) => Ok(bare(text, uid)),
            (None, None) if text == "root" => Ok(User { home: "/root".into(), ..bare("root", 0) }),
            (None, None) => Err(UserError::NoUser(text.to_owned())),
        }
    }

    /// Whether an id is a user's or a group's. A database that cannot be read has none.
    #[must_use]
    pub fn knows_id(&self, id: u32) -> bool {
        let has = |path: &Path, column: usize| {
            let table = read(path).unwrap_or_default();
            table.lines().any(|line| line.split(':').nth(column).is_some_and(|text| text.parse() == Ok(id)))
        };
        has(&self.passwd, 2) || has(&self.group, 2)
    }

    /// A group's id by name or number.
    ///
    /// # Errors
    /// The name is unknown, the number no id, or group cannot be read.
    pub fn group(&self, text: &str) -> Result<u32, UserError> {
        if let Some(gid) = number(text)? {
            return Ok(gid);
        }
        if text == "root" {
            return Ok(0);
        }
        let table = read(&self.group)?;
        let found = table.lines().filter_map(group_line).find(|(name, ..)| *name == text);
        found.map(|(_, gid, _)| gid).ok_or_else(|| UserError::NoGroup(text.to_owned()))
    }

    /// The groups that a user is a member of, besides the primary one; sorted, each once. initgroups(3).
    ///
    /// # Errors
    /// If group cannot be read; a missing file means no groups.
    pub fn supplementary(&self, user: &str, primary: u32) -> Result<Vec<u32>, UserError> {
        let table = match read(&self.group) {
            Err(UserError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            result => result?,
        };
        let member = |members: &str| members.split(',').any(|name| name == user);
        let mut groups: Vec<u32> = table
            .lines()
            .filter_map(group_line)
            .filter(|(_, gid, members)| *gid != primary && member(members))
            .map(|(_, gid, _)| gid)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    }
}

fn bare(name: &str, id: u32) -> User {
    User { name: name.to_owned(), uid: id, gid: id, home: "/".to_owned(), shell: "/bin/sh".to_owned() }
}

fn read(path: &Path) -> Result<String, UserError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(UserError::Read { path: path.to_owned(), source }),
    }
}

/// The number that a text is, if it is all digits.
fn number(text: &str) -> Result<Option<u32>, UserError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let id = text.parse().ok().filter(|id| *id <= ID_MAX);
    id.map(Some).ok_or_else(|| UserError::BadId(text.to_owned()))
}

fn passwd_line(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    let home = fields.nth(1).filter(|home| !home.is_empty()).unwrap_or("/");
    let shell = fields.next().filter(|shell| !shell.is_empty()).unwrap_or("/bin/sh");
    Some(User { name: name.to_owned(), uid, gid, home: home.to_owned(), shell: shell.to_owned() })
}

fn group_line(line: &str) -> Option<(&str, u32, &str)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let gid = fields.nth(1)?.parse().ok()?;
    Some((name, gid, fields.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> (tempdir::Dir, Accounts) {
        let dir = tempdir::Dir::new("accounts");
        fs::create_dir(dir.path().join("etc")).unwrap();
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nsvc:x:200:300::/srv:\nbroken\n:x:1:1:::\nbad:x:no:1:::\n";
        fs::write(dir.path().join("etc/passwd"), passwd).unwrap();
        let group = "root:x:0:\nsvc:x:300:\nlog:x:7:svc,other\nnet:x:5:svc\nno:x:9:svcx\n";
        fs::write(dir.path().join("etc/group"), group).unwrap();
        let accounts = Accounts::below(dir.path());
        (dir, accounts)
    }

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let (_dir, accounts) = accounts();
        let svc =
            User { name: "svc".into(), uid: 200, gid: 300, home: "/srv".into(), shell: "/bin/sh".into() };
        assert_eq!(accounts.user("svc").unwrap(), svc);
        assert_eq!(accounts.user("200").unwrap(), svc);
        assert_eq!(accounts.user("4711").unwrap(), bare("4711", 4711));
    }

    #[test]
    fn what_is_not_there_is_an_error_and_never_root() {
        let (_dir, accounts) = accounts();
        for text in ["nosuch", "0day", "", " svc", "broken", "bad", "-1", "4294967295", "99999999999"] {
            assert!(accounts.user(text).is_err(), "{text:?}");
            assert!(accounts.group(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_id_is_known_that_a_user_or_a_group_has() {
        let (_dir, accounts) = accounts();
        for (id, known) in [(200, true), (300, true), (7, true), (0, true), (1, true), (201, false)] {
            assert_eq!(accounts.knows_id(id), known, "{id}");
        }
    }

    #[test]
    fn groups_hold_their_members() {
        let (_dir, accounts) = accounts();
        assert_eq!(accounts.group("log").unwrap(), 7);
        assert_eq!(accounts.group("42").unwrap(), 42);
        assert_eq!(accounts.supplementary("svc", 300).unwrap(), [5, 7]);
        assert_eq!(accounts.supplementary("svc", 5).unwrap(), [7]);
    }

    #[test]
    fn an_image_without_databases_still_has_root() {
        let accounts = Accounts::below(Path::new("/nonexistent"));
        assert_eq!(accounts.user("root").unwrap().uid, 0);
        assert_eq!(accounts.group("root").unwrap(), 0);
        assert!(matches!(accounts.user("svc"), Err(UserError::Read { .. })));
    }

    /// A folder that is removed at the end of a test.
    mod tempdir {
        use std::path::{Path, PathBuf};

        pub(super) struct Dir(PathBuf);

        impl Dir {
            pub(super) fn new(name: &str) -> Self {
                let thread = format!("{:?}", std::thread::current().id());
                let id: String = thread.chars().filter(char::is_ascii_digit).collect();
                let path = std::env::temp_dir().join(format!("agentd-{name}-{}-{id}", std::process::id()));
                std::fs::create_dir_all(&path).unwrap();
                Self(path)
            }

            pub(super) fn path(&self) -> &Path {
                &self.0
            }
        }

        impl Drop for Dir {
            fn drop(&mut self) {
                let removed = std::fs::remove_dir_all(&self.0);
                assert!(removed.is_ok() || std::thread::panicking());
            }
        }
    }
}
