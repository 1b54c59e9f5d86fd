/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/check.h"

#include <string.h>

int check_hostname(const char *name, struct fault *f)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	if (name[strspn(name, letters)] != '\0')
		return fault_set(f, AGENT_E_PARAMS,
				 "hostname: only letters, digits, '-', '.', '_'");
	return 0;
}

int check_process(const struct agent_process *m, struct fault *f)
{
	if (m->cwd[0] && m->cwd[0] != '/')
		return fault_set(f, AGENT_E_PARAMS, "cwd \"%s\": not absolute", m->cwd);
	for (size_t i = 0; i < m->env.n; i++)
		if (!strchr(m->env.v[i], '=') || m->env.v[i][0] == '=')
			return fault_set(f, AGENT_E_PARAMS, "env: member %zu is not a NAME=value",
					 i);
	if (!m->exec.v[0][0])
		return fault_set(f, AGENT_E_PARAMS, "exec: the program has no name");
	return 0;
}
