/* What the measurements need beside the manager: the floors, which do the same work with the fewest calls, and the
 * loads, which are the same for the manager and for the floor.
 *
 * Marks are 16 bytes on a FIFO: CLOCK_MONOTONIC in nanoseconds, a pid, a tag. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct mark {
	uint64_t nanoseconds;
	uint32_t pid, tag;
};

enum { BEGUN = 1, ENDED = 2 };

static void fail(const char *what)
{
	fprintf(stderr, "driver: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static pid_t spawn(char **argv)
{
	pid_t pid = vfork();
	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0)
		fail("vfork");
	return pid;
}

/* For reading and writing, so that opening waits for nobody and the end never comes. */
static int open_fifo(const char *path)
{
	if (mkfifo(path, 0600) != 0 && errno != EEXIST)
		fail(path);
	int fifo = open(path, O_RDWR | O_CLOEXEC);
	if (fifo < 0)
		fail(path);
	return fifo;
}

static struct mark next_mark(int fifo)
{
	struct mark mark;
	if (read(fifo, &mark, sizeof mark) != sizeof mark)
		fail("reading a mark");
	return mark;
}

static void send_mark(const char *path, uint32_t tag)
{
	struct mark mark = { now(), getpid(), tag };
	int fifo = open(path, O_WRONLY);
	if (fifo < 0 || write(fifo, &mark, sizeof mark) != sizeof mark)
		fail(path);
	close(fifo);
}

/* start COUNT PROGRAM [WORD...]: runs that many of them; at the end of its input terminates and reaps all. */
static int start(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	long count = atol(argv[0]);
	pid_t *pids = calloc(count, sizeof *pids);
	for (long i = 0; i < count; i++)
		pids[i] = spawn(argv + 1);
	char byte;
	while (read(0, &byte, 1) > 0)
		;
	for (long i = 0; i < count; i++)
		kill(pids[i], SIGTERM);
	for (long i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	return 0;
}

/* keep PROGRAM [WORD...]: runs it again whenever it ends. */
static int keep(int argc, char **argv)
{
	if (argc < 1)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t pid = spawn(argv);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* kill FIFO COUNT: kills whoever marks, that many times; prints the nanoseconds from each kill to the next mark. */
static int kill_marked(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	int fifo = open_fifo(argv[0]);
	struct mark mark = next_mark(fifo);
	for (long left = atol(argv[1]); left > 0; left--) {
		/* The service has to be seen as running before it dies, or the death counts as one of the start. */
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		uint64_t killed = now();
		if (kill(mark.pid, SIGKILL) != 0)
			fail("kill");
		mark = next_mark(fifo);
		printf("%" PRIu64 "\n", mark.nanoseconds - killed);
	}
	return 0;
}

/* The CPU time of all threads of a process, in nanoseconds. */
static uint64_t cpu(pid_t pid)
{
	char path[300];
	uint64_t sum = 0;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *folder = opendir(path);
	if (!folder)
		fail(path);
	for (struct dirent *entry; (entry = readdir(folder));) {
		uint64_t ran = 0;
		snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (file && fscanf(file, "%" SCNu64, &ran) == 1)
			sum += ran;
		if (file)
			fclose(file);
	}
	closedir(folder);
	return sum;
}

/* Whether a process has a child other than us, dead ones included. One page of the list says it. */
static int has_others(int children)
{
	char text[64] = "";
	ssize_t count = pread(children, text, sizeof text - 1, 0);
	if (count < 0)
		fail("reading the children of our parent");
	char *end;
	return strtol(text, &end, 10) != getpid() || strspn(end, " \n") != strlen(end);
}

/* Leaves `count` zombies to our parent: children of a child that goes without having waited for them. */
static void orphan(long count)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (long i = 0; i < count; i++) {
			pid_t child = vfork();
			if (child == 0)
				_exit(7);
			if (child < 0)
				_exit(1);
		}
		_exit(0);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("making orphans");
}

/* orphans RESULT COUNT BATCH: has our parent reap that many orphans. Each batch is made while the parent is stopped,
 * and timed from its going on until the last one is gone. Writes to the file RESULT: nanoseconds of reaping, nanoseconds
 * of the parent's CPU. */
static int orphans(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	long count = atol(argv[1]), batch = atol(argv[2]);
	pid_t parent = getppid();
	uint64_t took = 0, used = 0;
	char path[100];
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
	int children = open(path, O_RDONLY | O_CLOEXEC);
	if (children < 0)
		fail(path);
	/* The parent may have work of its own to do for our start. */
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	for (long made = 0; made < count; made += batch) {
		kill(parent, SIGSTOP);
		orphan(batch);
		uint64_t before = cpu(parent), begun = now();
		kill(parent, SIGCONT);
		while (has_others(children))
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
		took += now() - begun;
		used += cpu(parent) - before;
	}
	char text[100];
	int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", took, used);
	int result = open(argv[0], O_WRONLY | O_CREAT, 0600);
	if (result < 0 || write(result, text, length) != length)
		fail(argv[0]);
	return 0;
}

/* reap PROGRAM [WORD...]: a subreaper that does nothing but wait, until there is no child left. */
static int reap(int argc, char **argv)
{
	if (argc < 1)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	spawn(argv);
	siginfo_t info;
	while (waitid(P_ALL, 0, &info, WEXITED) == 0 || errno == EINTR)
		;
	return 0;
}

/* chatter FIFO COUNT: says that many lines of 100 bytes, one write each, between two marks. */
static int chatter(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	char line[100];
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	send_mark(argv[0], BEGUN);
	for (long left = atol(argv[1]); left > 0; left--)
		if (write(1, line, sizeof line) != sizeof line)
			fail("write");
	send_mark(argv[0], ENDED);
	for (;;)
		pause();
}

/* drain PROGRAM [WORD...]: runs it and throws away what it says. */
static int drain(int argc, char **argv)
{
	static char buffer[65536];
	int ends[2];
	if (argc < 1 || pipe(ends) != 0)
		return 2;
	pid_t pid = vfork();
	if (pid == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	while (read(ends[0], buffer, sizeof buffer) > 0)
		;
	return 0;
}

/* collect FIFO COUNT: waits for that many marks, and tells the first and the last of them on the console. */
static int collect(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	int fifo = open_fifo(argv[0]);
	uint64_t first = UINT64_MAX, last = 0;
	for (long left = atol(argv[1]); left > 0; left--) {
		struct mark mark = next_mark(fifo);
		first = mark.nanoseconds < first ? mark.nanoseconds : first;
		last = mark.nanoseconds > last ? mark.nanoseconds : last;
	}
	int console = open("/dev/console", O_WRONLY | O_NOCTTY);
	dprintf(console, "MARKS %" PRIu64 " %" PRIu64 "\n", first, last);
	return 0;
}

/* As the init of a machine, with no word: mounts /run and starts a collector and 100 services; the floor of a boot. */
__attribute__((noreturn)) static void init(void)
{
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", "/run", "tmpfs", 0, NULL);
	char *collector[] = { "/usr/bin/driver", "collect", "/run/marks", "100", NULL };
	char *service[] = { "/usr/bin/mark", "/run/marks", NULL };
	spawn(collector);
	for (int i = 0; i < 100; i++)
		spawn(service);
	for (;;)
		if (wait(NULL) < 0)
			pause();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int, char **);
	} verbs[] = {
		{ "start", start }, { "keep", keep },       { "kill", kill_marked }, { "orphans", orphans },
		{ "reap", reap },   { "chatter", chatter }, { "drain", drain },      { "collect", collect },
	};
	if (getpid() == 1)
		init();
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 2, argv + 2);
	fprintf(stderr, "driver: no such verb\n");
	return 2;
}
