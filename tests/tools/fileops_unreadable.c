// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_unreadable FILE: writes whose data the kernel has read, but a BPF
 * program at the end of the call cannot: its page is taken away while the call
 * waits for the next one, which comes by userfaultfd. The data is "A"s up to
 * the end of the first page and "B"s on the second.
 *
 * Exit status 77: there is no userfaultfd here.
 */
#include "../../replay/base.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
/* The second page begins where no folio of the page cache goes on, so that the
 * kernel has copied the first one before it meets it. */
#define BORDER (1LL << 30)

struct pages {
	int uffd;
	char *at;	/* two of them; the second one is not there */
};

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* The call waits for the second page: take the first one, then give it. */
static void *take_and_give(void *arg)
{
	struct pages *p = arg;
	char bytes[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = {
		.dst = (u64)(p->at + PAGE), .src = (u64)bytes, .len = PAGE,
	};
	struct uffd_msg msg;

	memset(bytes, 'B', sizeof(bytes));
	if (read(p->uffd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT)
		fail("userfaultfd");
	if (madvise(p->at, PAGE, MADV_DONTNEED) ||
	    ioctl(p->uffd, UFFDIO_COPY, &copy))
		fail("exchanging the pages");
	return NULL;
}

static void prepare(struct pages *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	p->uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (p->uffd < 0)
		exit(77);
	p->at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->at == MAP_FAILED)
		fail("mmap");
	memset(p->at, 'A', PAGE);
	reg.range.start = (u64)(p->at + PAGE);
	reg.range.len = PAGE;
	if (ioctl(p->uffd, UFFDIO_API, &api) ||
	    ioctl(p->uffd, UFFDIO_REGISTER, &reg))
		fail("userfaultfd");
}

/* Writes the last before bytes of the first page, and the second page. */
static void write_pages(int fd, u32 before)
{
	u32 bytes = before + PAGE;
	char got[2 * PAGE];
	struct pages p;
	pthread_t t;

	prepare(&p);
	if (pthread_create(&t, NULL, take_and_give, &p))
		fail("pthread_create");
	if (pwrite(fd, p.at + PAGE - before, bytes, BORDER - before) != bytes)
		fail("pwrite");
	pthread_join(t, NULL);
	if (pread(fd, got, bytes, BORDER - before) != bytes)
		fail("pread");
	for (u32 i = 0; i < bytes; i++) {
		if (got[i] == (i < before ? 'A' : 'B'))
			continue;
		fprintf(stderr, "the kernel itself did not read the data\n");
		exit(2);
	}
	munmap(p.at, 2 * PAGE);
	close(p.uffd);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 2)
		fail("usage: fileops_unreadable FILE");
	fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0)
		fail(argv[1]);
	/* A whole piece, and one that is on both pages. */
	write_pages(fd, PAGE);
	write_pages(fd, 100);
	close(fd);
	return 0;
}
