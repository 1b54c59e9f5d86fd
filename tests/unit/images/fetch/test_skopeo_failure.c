/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/skopeo_failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

/* As skopeo 1.9.3 prints it, but for the time. */
#define FATAL(message) "time=\"2022-11-21T16:53:31Z\" level=fatal msg=\"" message "\"\n"
#define LOOK(cause)    FATAL("Error parsing image name \\\"docker://q.io/a:1\\\": " cause)
#define PING           "pinging container registry q.io: Get \\\"https://q.io/v2/\\\": "

static const struct registry_name quay = { .registry = "q.io", .repository = "a", .tag = "1" };

static void check(const char *log, int result, int code, const char *want)
{
	struct err e = ERR_INIT;
	int r = skopeo_failure(log, strlen(log), &quay, &e);
	if (r != result || e.code != code || !strstr(e.text, want))
		fail_msg("%s\ngave %d (%d): \"%s\"\ninstead of %d (%d): \"%s\"", log, r, e.code,
			 e.text, result, code, want);
	assert_null(strchr(e.text, '\n'));
}

static void fails(const char *log, int code, const char *want)
{
	check(log, code, code, want);
}

static void again(const char *log, int code, const char *want)
{
	check(log, SKOPEO_E_AGAIN, code, want);
}

static void test_names(void **state)
{
	(void)state;
	fails(LOOK("reading manifest 1 in q.io/a: manifest unknown: manifest unknown"), -ENOENT,
	      "registry \"q.io\" has no such image or tag (check");
	fails(LOOK("reading manifest 1 in q.io/a: name unknown: repository name not known to "
		   "registry"),
	      -ENOENT, "no such repository");
	fails(LOOK("reading manifest 1 in docker.io/library/a: errors:\\ndenied: requested access "
		   "to the resource is denied\\nunauthorized: authentication required\\n"),
	      -EACCES, "no such repository, or only for those who log in");
	fails(LOOK("reading manifest 1 in q.io/a: unauthorized: authentication required"), -EACCES,
	      "(a dockerAuth file in auth.d, or \"skopeo login q.io\")");
	fails(LOOK("reading manifest 1 in q.io/a: unauthorized: access to the requested resource "
		   "is not authorized"),
	      -EACCES, "does not let us in: access to the requested resource is not authorized (a");
	fails(LOOK("unable to retrieve auth token: invalid username/password: unauthorized"),
	      -EACCES, "does not accept user and password");
	fails(LOOK("reading manifest 1 in q.io/a: StatusCode: 429, slow down"), -EBUSY,
	      "too many requests");
	fails(FATAL("reading blob sha256:e55b: Error fetching blob: invalid status code from "
		    "registry 404 (Not Found)"),
	      -ENOENT, "does not have a blob");
}

static void test_transport(void **state)
{
	(void)state;
	fails(LOOK(PING "http: server gave HTTP response to HTTPS client"), -EPROTO,
	      "speaks plain HTTP (if that is as it should be: --insecure-options=tls)");
	fails(LOOK(PING "x509: certificate signed by unknown authority"), -EPROTO,
	      "cannot be trusted: certificate signed by unknown authority (put its authority into "
	      "/etc/containers/certs.d/q.io/ca.crt, or use --insecure-options=tls)");
	fails(LOOK(PING "dial tcp: lookup q.io on 10.0.0.53:53: no such host"), -EHOSTUNREACH,
	      "there is no host of the name of registry \"q.io\"");
	again(LOOK(PING "dial tcp 127.0.0.1:1: connect: connection refused"), -ECONNREFUSED,
	      "nobody answers");
	again(LOOK(PING "dial tcp: lookup q.io on 10.0.0.53:53: server misbehaving"), -EHOSTUNREACH,
	      "the name server");
	again(LOOK(PING "dial tcp 10.0.0.1:443: i/o timeout"), -ETIMEDOUT, "does not answer");
	again(LOOK(PING "net/http: TLS handshake timeout"), -ETIMEDOUT, "does not answer");
	again(LOOK(PING "EOF"), -ECONNRESET, "without an answer");
	again(LOOK(PING "dial tcp 10.0.0.1:443: connect: network is unreachable"), -ENETUNREACH,
	      "no network");
	again(LOOK("reading manifest 1 in q.io/a: received unexpected HTTP status: 500 Internal "
		   "Server Error"),
	      -EIO, "internal error");
	again(FATAL("writing blob: happened during read: unexpected EOF"), -ECONNRESET,
	      "too early");
	again(FATAL("writing blob: happened during read: read tcp 127.0.0.1:45578->127.0.0.1:35119:"
		    " read: connection reset by peer"),
	      -ECONNRESET, "too early");
}

static void test_content(void **state)
{
	(void)state;
	fails(FATAL("writing blob: happened during read: Digest did not match, expected "
		    "sha256:e55b, got sha256:157f"),
	      -EBADMSG, "another digest than the manifest says");
	fails(FATAL("Source image rejected: A signature was required, but no signature exists"),
	      -EPERM, "signature policy: A signature was required, but no signature exists (see");
	fails(FATAL("Source image rejected: Running image docker://q.io/a:1 is rejected by "
		    "policy."),
	      -EPERM, "signature policy");
	fails(FATAL("Error loading trust policy: open /etc/containers/policy.json: no such file or "
		    "directory"),
	      -EINVAL, "open /etc/containers/policy.json: no such file");
	fails(FATAL("writing blob: write ./oci-put-blob943536437: no space left on device"),
	      -ENOSPC, "the disk is full");
	fails(FATAL("writing blob: write ./oci-put-blob3572456432: file too large"), -EFBIG,
	      "more than the manifest says");
	fails(LOOK("exceeded maximum allowed size of 4194304 bytes"), -EFBIG, "larger than 4 MiB");
}

/* What nobody has foreseen is quoted, cleaned. */
static void test_unknown(void **state)
{
	(void)state;
	char want[64];
	fails(FATAL("a new \\\"thing\\\"\\tsays \\x1b[31m\\nno"), -EIO,
	      "skopeo failed at registry \"q.io\": a new \"thing\" says  1b[31m no");
	fails("", -EIO, "it did not say why");
	fails("\n\n", -EIO, "it did not say why");
	fails("panic: runtime error\n\ngoroutine 1 [running]:\n", -EIO, "goroutine 1 [running]:");
	fails("level=fatal msg=bare", -EIO, "\"q.io\": bare");
	fails("level=fatal msg=\"cut off\\", -EIO, "\"q.io\": cut off\\");
	fails("level=fatal msg=", -EIO, "it did not say why");
	/* The last fatal line counts, not a warning behind it. */
	fails(FATAL("first") FATAL("second") "time=\"x\" level=warning msg=\"third\"\n", -EIO,
	      "\"q.io\": second");
	snprintf(want, sizeof(want), "\xff\x01\x80 raw");
	fails(want, -EIO, "\"q.io\": ??? raw");
}

/* A name cannot pass for a cause. */
static void test_name_is_no_cause(void **state)
{
	(void)state;
	fails(FATAL("reading manifest unknown in q.io/manifest: unauthorized: authentication "
		    "required"),
	      -EACCES, "wants a user");
	fails(FATAL("reading manifest Client.Timeout in q.io/timeout/x509/toomanyrequests: odd"),
	      -EIO, "skopeo failed");
	fails(FATAL("reading manifest 1 in q.io/x509: odd"), -EIO, "skopeo failed");
	fails(FATAL("reading manifest 1 in q.io/denied: odd"), -EIO, "skopeo failed");
	fails(FATAL("reading manifest 1 in q.io/unauthorized: odd"), -EIO, "skopeo failed");
}

static void test_long(void **state)
{
	(void)state;
	static char log[100000];
	struct err e = ERR_INIT;
	memset(log, 'x', sizeof(log) - 1);
	memcpy(log, "level=fatal msg=\"", strlen("level=fatal msg=\""));
	assert_int_equal(skopeo_failure(log, strlen(log), &quay, &e), -EIO);
	assert_int_equal(strlen(e.text),
			 strlen("skopeo failed at registry \"q.io\": ") + SKOPEO_QUOTE_MAX);
	/* A cause is found wherever it stands; too much text loses its end. */
	struct registry_name longest = { .repository = "a" };
	memset(longest.registry, 'r', REGISTRY_NAME_MAX);
	memcpy(log + 90000, ": x509: bad", strlen(": x509: bad"));
	assert_int_equal(skopeo_failure(log, strlen(log), &longest, &e), -EPROTO);
	assert_non_null(strstr(e.text, "cannot be trusted: bad"));
	assert_true(strlen(e.text) < ERR_TEXT_MAX);
}

static int describe(void *ctx)
{
	struct err e = ERR_INIT;
	(void)ctx;
	int r = skopeo_failure("x: no space left on device", 26, &quay, &e);
	return r == -ENOSPC ? 0 : r;
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(describe, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_names),     fixture_test(test_transport),
		fixture_test(test_content),   fixture_test(test_unknown),
		fixture_test(test_long),      fixture_test(test_name_is_no_cause),
		fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
