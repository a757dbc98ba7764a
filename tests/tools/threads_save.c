// SPDX-License-Identifier: GPL-2.0-or-later
/* Several threads, each making what it wrote safe as it goes: whatever the
 * others do meanwhile, what a thread's fsync promised is what it had written. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 8

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(1);
}

static void *save(void *number)
{
	char name[16], data[8192];
	int fd;

	snprintf(name, sizeof(name), "file%ld", (long)number);
	memset(data, 'a' + (long)number, sizeof(data));
	fd = open(name, O_CREAT | O_WRONLY, 0644);
	check(fd, name);
	for (int i = 0; i < ROUNDS; i++) {
		check(write(fd, data, sizeof(data)), "write");
		check(fsync(fd), "fsync");
	}
	check(close(fd), "close");
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		check(-pthread_create(&threads[i], NULL, save, (void *)i),
		      "starting a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
