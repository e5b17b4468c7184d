/* The trivial service: tells when its first instruction ran, then waits for ever.
 *
 * usage: mark FIFO [...]
 *
 * Words after the first are those that the kernel adds where a script names it as its interpreter.
 *
 * What it writes is one mark of 16 bytes: CLOCK_MONOTONIC in nanoseconds, its pid, a tag of 0; see driver.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct mark {
	uint64_t nanoseconds;
	uint32_t pid, tag;
};

int main(int argc, char **argv)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	struct mark mark = { now.tv_sec * 1000000000ull + now.tv_nsec, getpid(), 0 };
	if (argc < 2)
		return 2;
	/* A measurement that ends or is broken off leaves nothing behind: whoever reads the mark may end our parent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int fifo = open(argv[1], O_WRONLY);
	if (fifo < 0 && errno == ENOENT && mkfifo(argv[1], 0600) != 0 && errno != EEXIST)
		return 1;
	if (fifo < 0 && (fifo = open(argv[1], O_WRONLY)) < 0)
		return 1;
	if (write(fifo, &mark, sizeof mark) != sizeof mark)
		return 1;
	close(fifo);
	for (;;)
		pause();
}
