/* Tries to get out of a sandbox, one way after the other. For each it prints a line: the name of the attempt, and "done",
 * the errno's name, or the signal that it ended by. Each attempt is a child of its own, so that one that is killed, or that
 * changes itself, leaves the others alone. What can be done is undone, or is done to the values that are there already.
 *
 * Usage: hostile MANAGER-PID VICTIM-PID FOLDER ATTEMPT...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/capability.h>
#include <unistd.h>

static int manager, victim;
static const char *folder;
static char *self;

static char *in(const char *base, const char *name) {
    char *text;
    return asprintf(&text, "%s/%s", base, name) < 0 ? NULL : text;
}

static char *proc(int pid, const char *name) {
    char *text;
    return asprintf(&text, "/proc/%d/%s", pid, name) < 0 ? NULL : text;
}

/* Makes a file and takes it away again. */
static int make(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd >= 0) unlink(path);
    return fd;
}

/* The first of these that is there can be opened so. */
static int open_first(int flags, ...) {
    va_list paths;
    const char *path;
    int result = -1;
    errno = ENOENT;
    va_start(paths, flags);
    while (result < 0 && (path = va_arg(paths, const char *)) != NULL) {
        struct stat there;
        if (stat(path, &there) != 0) continue;
        result = open(path, flags);
        break;
    }
    va_end(paths);
    return result;
}

static struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};

static int raise_capability(int inheritable) {
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &header, sets) != 0) return -1;
    sets[0].permitted |= 1u << CAP_SYS_CHROOT;
    sets[0].effective |= 1u << CAP_SYS_CHROOT;
    if (inheritable) sets[0].inheritable |= 1u << CAP_SYS_CHROOT;
    return syscall(SYS_capset, &header, sets);
}

static int raise_ambient(void) {
    raise_capability(1);
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_CHROOT, 0, 0);
}

/* A copy of this program that belongs to root and has the set-user-id bit. */
static int setuid_binary(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl(in(folder, "setuid"), "setuid", (char *)NULL);
        _exit(99);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    errno = WEXITSTATUS(status) == 0 ? 0 : EPERM;
    return WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int mount_something(void) {
    char *place = in(folder, "writable");
    if (mount("none", place, "tmpfs", 0, NULL) != 0) return -1;
    umount(place);
    return 0;
}

static int clone_with(unsigned long flags, int new_call) {
    long child;
    if (new_call) {
        uint64_t arguments[8] = {flags, 0, 0, 0, SIGCHLD, 0, 0, 0};
        child = syscall(SYS_clone3, arguments, sizeof arguments);
    } else {
        child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    }
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child < 0 ? -1 : 0;
}

static int make_device(void) {
    char *path = in(getenv("STATE_DIRECTORY") ? getenv("STATE_DIRECTORY") : folder, "device");
    int made = mknod(path, S_IFBLK | 0600, makedev(7, 0));
    if (made == 0) unlink(path);
    return made;
}

static int by_handle(void) {
    struct { struct file_handle handle; unsigned char room[128]; } file;
    int mount_id, root = open("/", O_RDONLY | O_DIRECTORY);
    file.handle.handle_bytes = sizeof file.room;
    if (name_to_handle_at(AT_FDCWD, "/etc/passwd", &file.handle, &mount_id, 0) != 0) file.handle.handle_bytes = 8;
    return open_by_handle_at(root, &file.handle, O_RDONLY);
}

static int set_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now);
}

static int set_name(int domain) {
    struct utsname name;
    uname(&name);
    return domain ? setdomainname(name.domainname, strlen(name.domainname)) : sethostname(name.nodename, strlen(name.nodename));
}

/* One more than a strict unit may have: without its limits that is less than there is. */
static int more(int resource, rlim_t limit) {
    struct rlimit wanted = {limit, limit};
    return syscall(SYS_prlimit64, 0, resource, &wanted, NULL);
}

/* Says of another process how readily the kernel is to kill it, with the words that are there already. */
static int oom_score_of_another(void) {
    char text[32];
    int fd = open(proc(victim, "oom_score_adj"), O_RDWR);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    return length > 0 && lseek(fd, 0, SEEK_SET) == 0 && write(fd, text, length) == length ? 0 : -1;
}

/* More than LimitNPROC and TasksMax allow, all at once. */
static int many_processes(void) {
    enum { MANY = 600 };
    pid_t children[MANY];
    int count = 0, failed = 0;
    while (count < MANY) {
        pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        if (child < 0) {
            failed = errno;
            break;
        }
        children[count++] = child;
    }
    for (int i = 0; i < count; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    errno = failed;
    return failed ? -1 : 0;
}

static int set_id_bit(void) {
    char *path = in(getenv("STATE_DIRECTORY") ? getenv("STATE_DIRECTORY") : folder, "bits");
    int fd = open(path, O_CREAT | O_WRONLY, 0600), result = -1;
    if (fd >= 0) {
        result = fchmod(fd, 04700);
        int failed = errno;
        unlink(path);
        errno = failed;
    }
    return result;
}

static int write_and_execute(void) {
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static int make_executable(void) {
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(memory, 4096, PROT_READ | PROT_EXEC);
}

static int read_memory(void) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x1000, 1};
    return process_vm_readv(victim, &here, 1, &there, 1, 0);
}

/* A descriptor that nobody handed over. */
static int stray_descriptor(int first) {
    for (int fd = first; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) return fd;
    return -1;
}

static int own_stray_descriptor(void) {
    dup2(0, 77);
    return stray_descriptor(3);
}

static int in_rlimits(void) {
    struct sched_param rank = {1};
    return sched_setscheduler(0, SCHED_FIFO, &rank);
}

static int foreign_call(void) {
#ifdef __x86_64__
    return syscall(0x40000000 | 39);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int interrupt_call(void) {
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20));
    return result < 0 ? -1 : 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int ring(void) {
    char parameters[256] = {0};
    return syscall(SYS_io_uring_setup, 1, parameters);
}

static int counters(void) {
    char attributes[128] = {0};
    return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0);
}

static int map(void) {
    struct { uint32_t type, key, value, entries, flags; char rest[128]; } how = {2, 4, 4, 1, 0, {0}};
    return syscall(SYS_bpf, 0, &how, sizeof how);
}


/* A kernel without the family says of it what a filter says. With a flag that no socket has it says EINVAL before it looks at
 * the family, and a filter that forbids the family still says the same. */
static int crypto_socket(void) {
    enum { NO_SUCH_FLAG = 0x10 };
    int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);
    if (fd >= 0 || errno != EAFNOSUPPORT) return fd;
    return socket(AF_ALG, SOCK_SEQPACKET | NO_SUCH_FLAG, 0);
}

/* The other end is no process of this sandbox's, and no file stands for it. */
static int abstract_socket(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int length = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "agentd-escape-%d", manager);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int run(const char *name) {
#define IS(NAME) if (strcmp(name, NAME) == 0) return
    IS("write-etc") make("/etc/agentd-escape");
    IS("write-usr") make("/usr/agentd-escape");
    IS("write-home") make("/root/agentd-escape");
    IS("write-run") make("/run/agentd-escape");
    IS("write-units") make(in(folder, "units/evil.service.toml"));
    IS("write-sysctl") open("/proc/sys/kernel/domainname", O_WRONLY);
    IS("write-sysrq") open("/proc/sysrq-trigger", O_WRONLY);
    IS("write-irq") open("/proc/irq/default_smp_affinity", O_WRONLY);
    IS("write-sys") open_first(O_WRONLY, "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/rcu_expedited", NULL);
    IS("write-cgroup") open_first(O_WRONLY, "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/systemd/cgroup.procs", "/sys/fs/cgroup/cgroup.procs", NULL);
    IS("read-shadow") open("/etc/shadow", O_RDONLY);
    IS("read-home") open("/root", O_RDONLY | O_DIRECTORY);
    IS("read-state-of-another") open(in("/var/lib", getenv("VICTIM")), O_RDONLY | O_DIRECTORY);
    IS("see-manager") open(proc(manager, "stat"), O_RDONLY);
    IS("see-victim") open(proc(victim, "cmdline"), O_RDONLY);
    IS("environment-of-manager") open(proc(manager, "environ"), O_RDONLY);
    IS("signal-manager") kill(manager, 0);
    IS("signal-victim") kill(victim, 0);
    IS("pidfd-manager") ({ int fd = syscall(SYS_pidfd_open, manager, 0); syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0); });
    IS("pidfd-getfd") ({ int fd = syscall(SYS_pidfd_open, victim, 0); syscall(SYS_pidfd_getfd, fd, 1, 0); });
    IS("ptrace") ptrace(PTRACE_SEIZE, victim, NULL, NULL);
    IS("ptrace-manager") ptrace(PTRACE_SEIZE, manager, NULL, NULL);
    IS("memory-of-another") open(proc(victim, "mem"), O_RDWR);
    IS("memory-by-call") read_memory();
    IS("compare") syscall(SYS_kcmp, getpid(), victim, 0, 0, 0);
    IS("root-of-manager") open(proc(manager, "root/etc/shadow"), O_RDONLY);
    IS("folder-of-victim") open(proc(victim, "cwd"), O_RDONLY | O_DIRECTORY);
    IS("descriptor-of-manager") open(proc(manager, "fd/0"), O_RDONLY);
    IS("stray-descriptor") stray_descriptor(3);
    IS("stray-descriptor-of-its-own") own_stray_descriptor();
    IS("become-root") setuid(0);
    IS("become-another") setresuid(1, 1, 1);
    IS("leave-groups") setgroups(0, NULL);
    IS("raise-capability") raise_capability(0);
    IS("raise-ambient") raise_ambient();
    IS("set-user-id-program") setuid_binary();
    IS("mount") mount_something();
    IS("umount") umount2(in(folder, "writable"), 0);
    IS("remount") mount(NULL, "/nonexistent", NULL, MS_REMOUNT | MS_BIND, NULL);
    IS("pivot-root") syscall(SYS_pivot_root, "/nonexistent", "/nonexistent");
    IS("open-tree") syscall(SYS_open_tree, AT_FDCWD, "/", 1 | O_CLOEXEC);
    IS("fsopen") syscall(SYS_fsopen, "tmpfs", 0);
    IS("chroot") chroot(".");
    IS("unshare-user") unshare(CLONE_NEWUSER);
    IS("unshare-mount") unshare(CLONE_NEWNS);
    IS("unshare-pid") unshare(CLONE_NEWPID);
    IS("unshare-net") unshare(CLONE_NEWNET);
    IS("unshare-uts") unshare(CLONE_NEWUTS);
    IS("unshare-ipc") unshare(CLONE_NEWIPC);
    IS("unshare-cgroup") unshare(CLONE_NEWCGROUP);
    IS("clone-user") clone_with(CLONE_NEWUSER, 0);
    IS("clone3-user") clone_with(CLONE_NEWUSER, 1);
    IS("clone3-mount") clone_with(CLONE_NEWNS, 1);
    IS("setns") setns(open("/proc/self/ns/net", O_RDONLY), 0);
    IS("setns-of-manager") setns(open(proc(manager, "ns/mnt"), O_RDONLY), 0);
    IS("make-device") make_device();
    IS("open-disk") open_first(O_RDONLY, "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "/dev/ram0", NULL);
    IS("open-mem") open_first(O_RDONLY, "/dev/mem", "/dev/kmsg", NULL);
    IS("open-kvm") open_first(O_RDONLY, "/dev/kvm", "/dev/loop-control", "/dev/net/tun", NULL);
    IS("open-kcore") open_first(O_RDONLY, "/proc/kcore", "/proc/kallsyms", NULL);
    IS("load-module") syscall(SYS_init_module, NULL, 0, "");
    IS("load-module-file") syscall(SYS_finit_module, -1, "", 0);
    IS("unload-module") syscall(SYS_delete_module, "agentd_escape", O_NONBLOCK);
    IS("x32-call") foreign_call();
    IS("i386-call") interrupt_call();
    IS("keyring") syscall(SYS_keyctl, 0, -3, 0);
    IS("add-key") syscall(SYS_add_key, "user", "agentd-escape", "x", 1, -2);
    IS("request-key") syscall(SYS_request_key, "user", "agentd-escape", NULL, 0);
    IS("bpf") map();
    IS("perf-event") counters();
    IS("userfaultfd") syscall(SYS_userfaultfd, O_CLOEXEC);
    IS("io-uring") ring();
    IS("kexec") syscall(SYS_kexec_load, 0, 0, NULL, 0xffff);
    IS("open-by-handle") by_handle();
    IS("fanotify") syscall(SYS_fanotify_init, 0, O_RDONLY);
    IS("socket-raw") socket(AF_INET, SOCK_RAW, 1);
    IS("socket-packet") socket(AF_PACKET, SOCK_RAW, 0);
    IS("socket-netlink") socket(AF_NETLINK, SOCK_RAW, 0);
    IS("socket-vsock") socket(AF_VSOCK, SOCK_STREAM, 0);
    IS("socket-alg") crypto_socket();
    IS("bind-low-port") ({ struct sockaddr at = {AF_INET, {0, 81, 127, 0, 0, 1}}; bind(socket(AF_INET, SOCK_STREAM, 0), &at, 16); });
    IS("abstract-socket") abstract_socket();
    IS("set-clock") set_time();
    IS("set-time-of-day") ({ struct timeval now; gettimeofday(&now, NULL); settimeofday(&now, NULL); });
    IS("set-host-name") set_name(0);
    IS("set-domain-name") set_name(1);
    IS("more-processes") more(RLIMIT_NPROC, 513);
    IS("more-files") more(RLIMIT_NOFILE, 1025);
    IS("many-processes") many_processes();
    IS("priority") setpriority(PRIO_PROCESS, 0, -5);
    IS("real-time") in_rlimits();
    IS("processors") ({ cpu_set_t all; sched_getaffinity(0, sizeof all, &all); sched_setaffinity(0, sizeof all, &all); });
    IS("set-user-id-bit") set_id_bit();
    IS("give-away") chown(getenv("STATE_DIRECTORY") ? getenv("STATE_DIRECTORY") : in(folder, "writable"), 0, 0);
    IS("write-and-execute") write_and_execute();
    IS("make-executable") make_executable();
    IS("personality") personality(PER_LINUX32);
    IS("kernel-log") klogctl(10, NULL, 0);
    IS("swap") swapon("/nonexistent", 0);
    IS("accounting") acct("/nonexistent");
    IS("quota") syscall(SYS_quotactl, 0x800007 << 8, "/nonexistent", 0, NULL);
    IS("reboot") syscall(SYS_reboot, 0xdead, 0, 0, NULL);
#ifdef __x86_64__
    IS("ports") iopl(3);
    IS("some-ports") ioperm(0x80, 1, 1);
#endif
    IS("memory-of-another-unit") shmget(0x41474e54, 0, 0);
    IS("make-shared-memory") shmget(0x41474e54, 4096, IPC_CREAT | 0666);
    IS("remove-shared-memory") shmctl(shmget(0x41474e54, 0, 0), IPC_RMID, NULL);
    IS("leave-in-tmp") open("/tmp/agentd-escape-left", O_CREAT | O_WRONLY, 0600);
    IS("oom-score") oom_score_of_another();
    fprintf(stderr, "no attempt %s\n", name);
    _exit(98);
}

static void attempt(const char *name) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        errno = 0;
        int result = run(name);
        printf("%s %s\n", name, result >= 0 ? "done" : strerrorname_np(errno));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
}

int main(int count, char **arguments) {
    self = arguments[0];
    if (strcmp(self, "setuid") == 0) return geteuid() == 0 ? 0 : 1;
    if (count < 4) return 2;
    manager = atoi(arguments[1]);
    victim = atoi(arguments[2]);
    folder = arguments[3];
    for (int index = 4; index < count; index++) attempt(arguments[index]);
    return 0;
}
