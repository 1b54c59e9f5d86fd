/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/networks.h"

#include <errno.h>
#include <string.h>

/*
 * With portmap, which takes 3 ms where no port is forwarded. With firewall in "default": it takes
 * 15 ms, and 25 at the end of a pod, but where FORWARD's policy is DROP, as beside docker, nothing
 * else lets the pod's packets pass. The restricted network is not forwarded. Version 0.4.0, the
 * newest that the plugins of Debian 11 know. Without CHECK: that of portmap 1.1.1 wants rules for
 * IPv6, which these networks do not have.
 */
static const char *const built_in[] = {
	"{\"name\":\"" CNI_NET_DEFAULT
	"\",\"cniVersion\":\"0.4.0\",\"disableCheck\":true,\"plugins\":["
	"{\"type\":\"ptp\",\"ipMasq\":true,\"ipam\":{\"type\":\"host-local\","
	"\"subnet\":\"172.16.28.0/24\",\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}},"
	"{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true}},"
	"{\"type\":\"firewall\"}]}",
	"{\"name\":\"" CNI_NET_RESTRICTED
	"\",\"cniVersion\":\"0.4.0\",\"disableCheck\":true,\"plugins\":["
	"{\"type\":\"ptp\",\"ipMasq\":false,\"ipam\":{\"type\":\"host-local\","
	"\"subnet\":\"172.31.0.0/16\"}},"
	"{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true}}]}",
};

static void network_deinit(struct cni_network *net)
{
	cni_config_deinit(&net->config);
	free(net->broken);
}

void cni_networks_deinit(struct cni_networks *nets)
{
	if (!nets)
		return;
	for (size_t i = 0; i < nets->n; i++)
		network_deinit(&nets->v[i]);
	free(nets->v);
	*nets = (struct cni_networks){ .v = NULL };
}

static struct cni_network *find_name(const struct cni_networks *nets, const char *name)
{
	for (size_t i = 0; *name && i < nets->n; i++)
		if (strcmp(nets->v[i].config.name, name) == 0)
			return &nets->v[i];
	return NULL;
}

int cni_networks_add(struct cni_networks *nets, struct cni_config *c, size_t layer,
		     const char *broken)
{
	CLEANUP(network_deinit) struct cni_network net = { .config = *c, .layer = layer };
	*c = (struct cni_config){ .name = "" };
	net.broken = broken ? strdup(broken) : NULL;
	if (broken && !net.broken)
		return -ENOMEM;
	struct cni_network *same = find_name(nets, net.config.name);
	if (same && same->layer >= layer)
		return 0;
	if (!same && nets->n == CNI_NETWORKS_MAX)
		return -E2BIG;
	if (!same && !GROW(nets->v, nets->n))
		return -ENOMEM;
	if (same)
		network_deinit(same);
	else
		same = &nets->v[nets->n++];
	*same = net;
	net = (struct cni_network){ .layer = 0 };
	return 0;
}

int cni_networks_add_built_in(struct cni_networks *nets)
{
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++) {
		struct cni_config c;
		int r = cni_config_parse(built_in[i], strlen(built_in[i]), &c, NULL);
		if (r == 0)
			r = cni_networks_add(nets, &c, 0, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *file_name(const struct cni_network *net)
{
	const char *slash = strrchr(net->config.path, '/');
	return slash ? slash + 1 : net->config.path;
}

static int compare(const void *a, const void *b)
{
	const struct cni_network *x = a, *y = b;
	if ((x->layer == 0) != (y->layer == 0))
		return x->layer == 0 ? 1 : -1;
	int order = strcmp(file_name(x), file_name(y));
	return order != 0 ? order : strcmp(x->config.path, y->config.path);
}

void cni_networks_sort(struct cni_networks *nets)
{
	if (nets->n > 0)
		qsort(nets->v, nets->n, sizeof(nets->v[0]), compare);
}

int cni_networks_find(const struct cni_networks *nets, const char *name,
		      const struct cni_network **ret, struct err *e)
{
	const struct cni_network *found = find_name(nets, name);
	if (found && found->broken)
		return err_set(e, -EBADMSG, "%s", found->broken);
	for (size_t i = 0; i < nets->n; i++)
		if (nets->v[i].broken && !nets->v[i].config.name[0] &&
		    (!found || nets->v[i].layer > found->layer))
			return err_set(e, -EBADMSG, "%s", nets->v[i].broken);
	*ret = found;
	return 0;
}
