// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many distinct crash states a second are rebuilt, recovered and read, by
 * the pool and by the shell loop everybody writes first:
 *
 *     for each image: cp --sparse=always, mount -o loop, sha1sum, umount
 *
 * Both look at the same states, in turns, so that what else the machine does
 * hits both. The shell gets its images ready made, and fewer of them, where
 * temporary files are; --in-memory puts them into a tmpfs. The states are those
 * of a recording, or of a workload run here on a 64 MiB ext4 (scratch_disk.h).
 */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../replay/enumerate.h"
#include "../../replay/pool.h"
#include "../../replay/tree.h"
#include "../unit/scratch_disk.h"

#define TARGET_PER_SECOND 300
#define TARGET_RATIO 8
#define ROUNDS 24
#define PAIRS_MAX 99
#define NO_ANSWER UINT32_MAX

static const struct scratch_fs bench_fs = {
	"ext4", 64 << 20, { "mke2fs", "-q", "-F", "-t", "ext4" }, NULL,
};

struct bench {
	const char *recording;
	u32 n_states, n_shell, n_pairs, workers, k;
	bool json, in_memory;

	struct scratch_trace *scratch;
	struct trace *t;
	struct image_index *index;
	const char *fs_type;
	u32 n;			/* states */
	struct disk_state *states;
	u32 *files;		/* the pool's answer for each */
	struct store *store;	/* in each worker, its own copy */
	char dir[PATH_MAX];	/* the shell's */
	double pool[PAIRS_MAX], shell[PAIRS_MAX];	/* states a second */
	double ratio[PAIRS_MAX];
};

static void die(const char *what, const struct errmsg *em)
{
	fprintf(stderr, "explore: %s%s%s\n", what, em ? ": " : "",
		em ? em->text : "");
	exit(EXIT_CANNOT_RUN);
}

/* ---- the states ---------------------------------------------------------- */

static int keep_state(void *ctx, const struct site *s)
{
	struct bench *b = ctx;
	struct disk_state *st = &b->states[b->n];
	u32 *drop;

	if (!s->first)
		return 0;
	drop = xreallocarray(NULL, s->n_drop, sizeof(*drop));
	if (s->n_drop)
		memcpy(drop, s->drop, s->n_drop * sizeof(*drop));
	*st = (struct disk_state){
		b->t->points[s->point].n_units, s->n_drop, drop,
	};
	return ++b->n == b->n_states;
}

static void find_states(struct bench *b)
{
	struct enum_opts opts = { .k = b->k, .to_seq = SEQ_NEVER };
	struct trace_opts topts = { .model = MODEL_DEVICE };
	struct errmsg em = { "" };
	struct enumerator *e;
	struct enum_stats stats;

	if (b->recording) {
		if (trace_load(b->recording, &topts, &b->t, &em) < 0)
			die("reading the recording", &em);
		b->index = image_index_new(b->t);
		b->fs_type = b->t->fs_type ? b->t->fs_type : "ext4";
	} else {
		if (scratch_trace_new(&bench_fs, ROUNDS, &b->scratch, &em) < 0)
			die("making a workload", &em);
		b->t = b->scratch->t;
		b->index = b->scratch->index;
		b->fs_type = bench_fs.type;
	}
	b->states = xreallocarray(NULL, b->n_states, sizeof(*b->states));
	b->files = xreallocarray(NULL, b->n_states, sizeof(*b->files));
	e = enumerator_new(b->t);
	if (enumerate(e, &opts, keep_state, b, &stats) < 0 || !b->n)
		die("no crash states found", NULL);
	enumerator_free(e);
}

/* ---- the pool ------------------------------------------------------------ */

static int judge(void *ctx, const struct job *j, int root, const char *path,
		 const char *log, struct buf *ret)
{
	struct bench *b = ctx;
	struct errmsg em;
	struct tree tree;
	u32 files = 0;
	int r;

	(void)j, (void)path, (void)log;
	r = tree_read(b->store, root, NULL, NULL, NULL, &tree, &em);
	if (r < 0)
		return r;
	for (u32 i = 0; i < tree.n; i++)
		files += tree.nodes[i].type == NODE_FILE;
	tree_free(b->store, &tree);
	buf_put_u32(ret, files);
	return 0;
}

static int done(void *ctx, u64 id, enum mount_outcome outcome, int error,
		const char *log, const void *answer, size_t len)
{
	struct cursor c = cursor_of(answer, len);
	struct bench *b = ctx;

	(void)error, (void)log;
	b->files[id] = outcome == MOUNT_OK ? cur_u32(&c) : NO_ANSWER;
	return 0;
}

/* States a second, starting and ending the workers included. */
static double run_pool(struct bench *b)
{
	struct pool_opts opts = {
		.workers = b->workers,
		.fs_type = b->fs_type,
		.judge = judge,
		.done = done,
		.ctx = b,
	};
	u64 start = now_ns();
	struct errmsg em = { "" };
	struct pool *p;

	if (pool_new(b->t, b->index, &opts, &p, &em) < 0)
		die("starting the pool", &em);
	for (u32 i = 0; i < b->n; i++) {
		struct job j = { i, b->states[i] };

		if (pool_submit(p, &j, &em) < 0)
			die("exploring", &em);
	}
	if (pool_drain(p, &em) < 0)
		die("exploring", &em);
	pool_free(p);
	return b->n * 1e9 / (now_ns() - start);
}

/* ---- the shell loop ------------------------------------------------------ */

/* Every so-manieth state, the shell's nth. */
static u32 shell_state(const struct bench *b, u32 n)
{
	return (u64)n * b->n / b->n_shell;
}

static void make_images(struct bench *b)
{
	struct errmsg em = { "" };

	b->n_shell = MIN(b->n_shell, b->n);
	for (u32 i = 0; i < b->n_shell; i++) {
		_cleanup_free_ char *path = xasprintf("%s/img%u", b->dir, i);
		struct image *m;
		int fd;

		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, b->t->bytes) < 0)
			die("making an image", NULL);
		if (image_new(b->t, b->index, fd, &m, &em) < 0 ||
		    image_goto(m, &b->states[shell_state(b, i)], &em) < 0)
			die("making an image", &em);
		image_free(m);
		close(fd);
	}
}

/* States a second. The shell says how many files it hashed in each, and this
 * is held against what the pool saw. */
static double run_shell(struct bench *b)
{
	_cleanup_free_ char *script = xasprintf(
		"cd '%s' && mkdir -p mnt && i=0\n"
		"while [ $i -lt %u ]; do\n"
		"  cp --sparse=always img$i work && mount -t %s -o loop%s work"
		" mnt || exit 1\n"
		"  find mnt -type f -exec sha1sum {} + > sums\n"
		"  umount mnt || exit 1\n"
		"  wc -l < sums\n"
		"  i=$((i + 1))\n"
		"done\n", b->dir, b->n_shell, b->fs_type,
		strcmp(b->fs_type, "xfs") ? "" : ",nouuid");
	u64 start = now_ns();
	FILE *f = popen(script, "re");
	double seconds;
	u32 files;

	if (!f)
		die("starting a shell", NULL);
	for (u32 i = 0; i < b->n_shell; i++) {
		if (fscanf(f, "%u", &files) != 1)
			die("the shell loop failed", NULL);
		if (files != b->files[shell_state(b, i)])
			die("the shell saw other files than the pool", NULL);
	}
	seconds = (now_ns() - start) / 1e9;
	if (pclose(f))
		die("the shell loop failed", NULL);
	return b->n_shell / seconds;
}

/* ---- the outcome --------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v, u32 n)
{
	double sorted[PAIRS_MAX];

	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*v), compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void print_json(const struct bench *b, double pool, double shell,
		       double ratio)
{
	printf("{\"version\":1,\"bench\":\"explore\",\"file_system\":\"%s\","
	       "\"image_bytes\":%llu,\"workers\":%u,\"states\":%u,"
	       "\"shell_states\":%u,\"shell_in_memory\":%s,\"pairs\":[",
	       b->fs_type, (unsigned long long)b->t->bytes, b->workers, b->n,
	       b->n_shell, b->in_memory ? "true" : "false");
	for (u32 i = 0; i < b->n_pairs; i++)
		printf("%s{\"pool_per_second\":%.1f,"
		       "\"shell_per_second\":%.1f,\"ratio\":%.1f}",
		       i ? "," : "", b->pool[i], b->shell[i], b->ratio[i]);
	printf("],\"pool_per_second\":%.1f,\"shell_per_second\":%.1f,"
	       "\"ratio\":%.1f,\"target_per_second\":%d,"
	       "\"target_ratio\":%d}\n", pool, shell, ratio,
	       TARGET_PER_SECOND, TARGET_RATIO);
}

static void print_text(const struct bench *b, double pool, double shell,
		       double ratio)
{
	printf("%u distinct states of a %llu MiB %s, %u workers; shell loop"
	       " over %u of them, %s\n", b->n,
	       (unsigned long long)b->t->bytes >> 20, b->fs_type, b->workers,
	       b->n_shell, b->in_memory ? "in memory" : b->dir);
	for (u32 i = 0; i < b->n_pairs; i++)
		printf("  pair %u: pool %.0f/s, shell %.1f/s, ratio %.1f\n",
		       i + 1, b->pool[i], b->shell[i], b->ratio[i]);
	printf("median: pool %.0f/s (target %d), shell %.1f/s, ratio %.1f"
	       " (target %d)\n", pool, TARGET_PER_SECOND, shell, ratio,
	       TARGET_RATIO);
}

static void usage(FILE *out)
{
	fprintf(out,
		"Usage: explore [OPTION]...\n"
		"Crash states a second, by the pool and by a shell loop.\n\n"
		"  --recording FILE  its states (default: of a workload run"
		" here)\n"
		"  --states N        at most so many (600)\n"
		"  --shell-states N  so many of them for the shell (24)\n"
		"  --pairs N         so many turns (5)\n"
		"  --workers N       of the pool (2)\n"
		"  --in-memory       the shell's images in a tmpfs\n"
		"  -k N              so many writes lost (2)\n"
		"  --json            one JSON object\n"
		"  --help\n");
}

static u32 number(const char *text, u32 max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || !n || n > max) {
		fprintf(stderr, "explore: '%s' is not a number from 1 to %u\n",
			text, max);
		exit(EXIT_CANNOT_RUN);
	}
	return n;
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "recording", required_argument, NULL, 'r' },
		{ "states", required_argument, NULL, 's' },
		{ "shell-states", required_argument, NULL, 'S' },
		{ "pairs", required_argument, NULL, 'p' },
		{ "workers", required_argument, NULL, 'w' },
		{ "in-memory", no_argument, NULL, 'm' },
		{ "json", no_argument, NULL, 'J' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "k:", options, NULL)) >= 0) {
		switch (c) {
		case 'r': b->recording = optarg; break;
		case 's': b->n_states = number(optarg, 10000000); break;
		case 'S': b->n_shell = number(optarg, 10000); break;
		case 'p': b->n_pairs = number(optarg, PAIRS_MAX); break;
		case 'w': b->workers = number(optarg, 256); break;
		case 'k': b->k = number(optarg, 1000); break;
		case 'm': b->in_memory = true; break;
		case 'J': b->json = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(EXIT_CANNOT_RUN);
		}
	}
}

/* A directory for the shell; what is mounted in it is seen by us alone. */
static void make_directory(struct bench *b)
{
	const char *tmp = getenv("TMPDIR");

	if (snprintf(b->dir, sizeof(b->dir), "%s/blkbox-bench-XXXXXX",
		     tmp ? tmp : "/tmp") >= (int)sizeof(b->dir) ||
	    strchr(b->dir, '\'') || !mkdtemp(b->dir))
		die("making a directory", NULL);
}

static void run(struct bench *b)
{
	double pool, shell, ratio;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    (b->in_memory && mount("bench", b->dir, "tmpfs", 0, NULL) < 0))
		die("root is needed", NULL);
	find_states(b);
	b->store = store_new();
	make_images(b);
	for (u32 i = 0; i < b->n_pairs; i++) {
		b->pool[i] = run_pool(b);
		b->shell[i] = run_shell(b);
		b->ratio[i] = b->pool[i] / b->shell[i];
	}
	pool = median(b->pool, b->n_pairs);
	shell = median(b->shell, b->n_pairs);
	ratio = median(b->ratio, b->n_pairs);
	if (b->json)
		print_json(b, pool, shell, ratio);
	else
		print_text(b, pool, shell, ratio);
	for (u32 i = 0; i < b->n; i++)
		free((void *)b->states[i].drop);
	free(b->states);
	free(b->files);
	store_free(b->store);
	if (b->scratch) {
		scratch_trace_free(b->scratch);
	} else {
		image_index_free(b->index);
		trace_free(b->t);
	}
}

/* The bench runs in a child, so that its directory goes however it ends. */
int main(int argc, char **argv)
{
	struct bench b = {
		.n_states = 600, .n_shell = 24, .n_pairs = 5, .workers = 2,
		.k = 2,
	};
	static const char *const rm[] = { "rm", "-rf", NULL };
	int status = 0;
	pid_t pid;

	parse(&b, argc, argv);
	make_directory(&b);
	signal(SIGINT, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		run(&b);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = EXIT_CANNOT_RUN << 8;
	scratch_run(rm, b.dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CANNOT_RUN;
}
