// SPDX-License-Identifier: GPL-2.0-or-later
#include "syscall_numbers.h"

#include <string.h>
#include <sys/syscall.h>

#include "../replay/base.h"

#define NR(name) { #name, SYS_##name }

static const struct {
	const char *name;
	int nr;
} numbers[] = {
	NR(openat), NR(openat2), NR(write), NR(pwrite64), NR(writev),
	NR(pwritev), NR(pwritev2), NR(truncate), NR(ftruncate), NR(fallocate),
	NR(renameat2), NR(linkat), NR(unlinkat), NR(symlinkat), NR(mkdirat),
	NR(mknodat), NR(close), NR(dup3), NR(close_range), NR(execve),
	NR(execveat), NR(fsync), NR(fdatasync), NR(sync), NR(syncfs),
	NR(sync_file_range), NR(mmap), NR(msync), NR(splice),
	NR(copy_file_range), NR(ioctl),
	{ "sendfile64", SYS_sendfile },
#ifdef SYS_open
	NR(open), NR(creat), NR(rename), NR(renameat), NR(link), NR(unlink),
	NR(symlink), NR(mkdir), NR(rmdir), NR(mknod), NR(dup2),
#endif
};

int syscall_number(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(numbers[i].name, name))
			return numbers[i].nr;
	return -1;
}
