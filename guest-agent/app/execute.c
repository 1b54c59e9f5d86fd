/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries the candidates as execvp(3) does, the first that is there decides, but in two steps: which
 * are there, and what the program wants for an interpreter, is found out before the app's system
 * call filter is installed, which may forbid to look.
 */
#include "guest-agent/app/execute.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/app/program.h"
#include "lib/os/fd.h"

#define PROGRAM_HEADERS_MAX 64 /* looked at for an interpreter; linkers make about 13 */

/* A "#!" line names its interpreter up to the first blank. */
static bool script_interpreter(const char *head, size_t len, char *ret)
{
	if (len < 2 || memcmp(head, "#!", 2) != 0)
		return false;
	size_t at = 2;
	while (at < len && (head[at] == ' ' || head[at] == '\t'))
		at++;
	size_t n = 0;
	while (at + n < len && !memchr(" \t\r\n", head[at + n], 5) && n < EXECUTE_INTERPRETER_MAX)
		n++;
	memcpy(ret, head + at, n);
	ret[n] = '\0';
	return n > 0;
}

/* PT_INTERP of a 64-bit ELF program. The file is hostile: every offset goes to pread(2). */
static bool elf_interpreter(int fd, const char *head, size_t len, char *ret)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	if (len < sizeof(eh) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	memcpy(&eh, head, sizeof(eh));
	for (unsigned i = 0; i < eh.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		if (eh.e_phoff > INT32_MAX ||
		    pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) !=
			    (ssize_t)sizeof(ph))
			return false;
		if (ph.p_type != PT_INTERP || ph.p_offset > INT32_MAX)
			continue;
		ssize_t n = pread(fd, ret, MIN(ph.p_filesz, (size_t)EXECUTE_INTERPRETER_MAX),
				  (off_t)ph.p_offset);
		if (n <= 0)
			return false;
		ret[n] = '\0';
		return true;
	}
	return false;
}

void execute_find_interpreter(const char *path, char ret[EXECUTE_INTERPRETER_MAX + 1])
{
	char head[256];
	size_t len = 0;
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, head, sizeof(head), &len) < 0 ||
	    (!script_interpreter(head, len, ret) && !elf_interpreter(fd, head, len, ret)))
		ret[0] = '\0';
}

void execute_explain(const char *path, const char *interpreter, int err, struct fault *f)
{
	const char *culprit = err == ENOENT && interpreter[0] ? interpreter : path;
	const char *what = err == ENOENT || err == EACCES ? "open" : "execute";
	fault_sys(f, AGENT_E_INTERNAL, err, "Unable to %s \"%s\"", what, culprit);
}

/* Whether the user may look is not a question here: execve(2) will ask it. */
static bool is_there(const char *path)
{
	return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int execute_prepare(const char *app, const struct agent_process *p, const struct ids *ids,
		    const char *cwd, struct execution *ret, struct fault *f)
{
	struct strv candidates;
	ret->process = p;
	strv_init(&ret->env, PROGRAM_ENV_MAX);
	strv_init(&ret->paths, PROGRAM_DIRS_MAX);
	strv_init(&candidates, PROGRAM_DIRS_MAX);
	int r = program_environment(&p->env, app, ids, p->with_tty, &ret->env);
	if (r == 0)
		r = program_candidates(p->exec.v[0], &p->env, cwd, &candidates);
	for (size_t i = 0; r == 0 && i < candidates.n; i++)
		if (is_there(candidates.v[i]))
			r = strv_add(&ret->paths, candidates.v[i]);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "Unable to execute \"%s\"", p->exec.v[0]);
	if (ret->paths.n == 0) {
		execute_explain(candidates.n == 1 ? candidates.v[0] : p->exec.v[0], "", ENOENT, f);
		return FAULT_SET;
	}
	execute_find_interpreter(ret->paths.v[0], ret->interpreter);
	return 0;
}

int execute(struct execution *x, struct fault *f)
{
	size_t i = 0;
	do
		execve(x->paths.v[i], x->process->exec.v, x->env.v);
	while (errno == EACCES && ++i < x->paths.n);
	execute_explain(x->paths.v[MIN(i, x->paths.n - 1)], i == 0 ? x->interpreter : "", errno, f);
	return FAULT_SET;
}
