/* What the units of the comparison run: says what happens, in a line each, and behaves as its words say.
 *
 * usage: mark UNIT run | deaf | run-for SECONDS CODE | once CODE | serve | fork | barren | flag CODE | echo WORD
 *
 * graphs.txt tells what each is. A shell would do it as well, in a hundred times the instructions, which an emulated
 * processor is slow with. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PLACE "/run/compare/"

static const char *unit;

static void say(const char *what)
{
	int fd = open(PLACE "events", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || dprintf(fd, "%s %s\n", unit, what) < 0)
		exit(99);
	close(fd);
}

/* What was said is on paper before the manager goes on. */
static void ready(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	if (!name || strlen(name) >= sizeof to.sun_path)
		return;
	strcpy(to.sun_path, name);
	if (to.sun_path[0] == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	if (fd < 0 || sendto(fd, "READY=1", 7, 0, (struct sockaddr *)&to, length) < 0)
		exit(98);
	close(fd);
}

/* A helper that is only there, as the sleep of a shell in the background: it does not listen to the keyboard. */
static void helper(void)
{
	if (fork() != 0)
		return;
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (;;)
		pause();
}

static sigset_t term;

/* From here on a SIGTERM waits until somebody asks for it. */
static void hold(void)
{
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
}

static void until_stopped(void)
{
	int signal;
	helper();
	sigwait(&term, &signal);
	say("stop");
	exit(0);
}

static void spend(const char *seconds)
{
	double span = atof(seconds);
	struct timespec left = { (time_t)span, (long)((span - (time_t)span) * 1e9) };
	while (nanosleep(&left, &left) < 0)
		;
}

static void daemonize(void)
{
	char path[256];
	hold();
	pid_t daemon = fork();
	if (daemon == 0)
		until_stopped();
	snprintf(path, sizeof path, PLACE "%s.pid", unit);
	FILE *file = fopen(path, "we");
	if (!file || fprintf(file, "%d\n", daemon) < 0 || fclose(file) != 0)
		exit(97);
	say("start");
	exit(0);
}

static int is_first(void)
{
	char path[256];
	snprintf(path, sizeof path, PLACE "flag-%s", unit);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) >= 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	unit = argv[1];
	const char *what = argv[2], *one = argc > 3 ? argv[3] : "", *two = argc > 4 ? argv[4] : "";
	char last[32], byte;

	if (strcmp(what, "echo") == 0) {
		say(one);
		return 0;
	}
	if (strcmp(what, "fork") == 0)
		daemonize();
	if (strcmp(what, "deaf") == 0)
		signal(SIGTERM, SIG_IGN);
	if (strcmp(what, "run") == 0 || strcmp(what, "serve") == 0)
		hold();
	if (strcmp(what, "serve") == 0)
		while (read(3, &byte, 1) == 1 && byte != '\n')
			;
	say("start");
	if (strcmp(what, "barren") == 0)
		return 0;
	if (strcmp(what, "once") == 0)
		return atoi(one);
	if (strcmp(what, "run-for") == 0) {
		spend(one);
		snprintf(last, sizeof last, "exit-%s", two);
		say(last);
		return atoi(two);
	}
	if (strcmp(what, "flag") == 0) {
		if (is_first())
			return atoi(one);
		hold();
	}
	if (strcmp(what, "run") == 0 || strcmp(what, "serve") == 0)
		ready();
	if (strcmp(what, "deaf") == 0) {
		ready();
		helper();
		for (;;)
			pause();
	}
	until_stopped();
}
