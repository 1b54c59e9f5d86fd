#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# husk trust: what it refuses, what it shows and asks, where keys go; that the user's gpg stays out of it and nothing
# is left behind. (Signatures are checked by the unit tests of images/appc/trust.)
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
require gpg gpgconf python3 strace
local=$work/local keys=$work/keys

# The user's own: neither read nor written.
export HOME=$work/home GNUPGHOME=$work/gnupg TMPDIR=$work/tmp
mkdir -m 700 "$HOME" "$GNUPGHOME" "$TMPDIR" "$keys"

say "making keys"
"$top/tests/unit/images/appc/trust/make-keys.sh" "$keys"
alice=$(tr A-F a-f <"$keys/alice.fpr")
shown=$(sed -E 's/(....)/\1 /g; s/^(.{25})/\1 /; s/ $//' "$keys/alice.fpr")

trust() {
	timeout --kill-after=10 "$vm_limit" "$husk_bin" "--local-config=$local" trust "$@"
}

nothing_left() {
	equal "$(find "$HOME" "$GNUPGHOME" "$TMPDIR" -mindepth 1)" "" "left by gpg"
	for pid in $(pgrep -f "$work/(home|gnupg|tmp)" || :); do
		[ "$pid" = $$ ] || die "process left: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
}

refused() { # TEXT ARGS...
	local text=$1
	shift
	expect 254 trust "$@"
	equal "$err" "trust: $text" "error"
	equal "$out" "" "output of a failure"
	[ ! -e "$local" ] || die "a refusal made the keystore"
	nothing_left
}

say "for which images?"
expect 254 trust "$keys/alice.asc"
equal "$(head -n 1 "$work/err")" "trust: aborting due to implicit unbounded trust (root domain)" "no scope"
match "$err" "husk trust --prefix=.*husk trust --root" "what to do"
expect 254 trust
equal "$err" "Error: one of --prefix=PREFIX and --root is needed; see husk help trust" "nothing at all"
equal "$out" "" "no usage behind an error"
refused "--root and --prefix usage mutually exclusive" --root --prefix=example.com "$keys/alice.asc"
refused "--prefix must not contain a URL scheme, omit https://" --prefix=https://example.com "$keys/alice.asc"
for prefix in /a a/ a//b ../a a/../b a/.b $'a\nb'; do
	expect 254 trust "--prefix=$prefix" "$keys/alice.asc"
	one_line_error '^trust: --prefix ".*" is not a name like example.com/app \('
done
refused "--prefix has 1 to 255 bytes, like example.com/app" "--prefix=$(printf %0256d 0)" "$keys/alice.asc"

say "which key?"
refused "error determining key location: --root needs PUBKEY (give the path of a key)" --root
refused 'error determining key location: discovery failed for "a.invalid": "https://a.invalid?...": host "a.invalid" not found (check the name and DNS)' \
	--prefix=a.invalid
refused 'error reading key "http://a.b/k": --insecure-allow-http required for http URLs' --root http://a.b/k
refused 'error reading key "https://a.invalid/k": "https://a.invalid/k": host "a.invalid" not found (check the name and DNS)' --root https://a.invalid/k
refused 'error reading key "http://a.invalid/k": "http://a.invalid/k": host "a.invalid" not found (check the name and DNS)' \
	--root --insecure-allow-http http://a.invalid/k
expect 254 husk trust --insecure-options=pubkey --root http://a.invalid/k
match "$err" 'host "a.invalid" not found' "a key without TLS, as wanted"
refused 'error reading key "ftp://a.b/k": only local files and http or https URLs supported' --root ftp://a.b/k
refused "error reading key \"$work/none\": cannot read it: No such file or directory" --root "$work/none"

say "keys that are none"
bad() { # FILE TEXT
	refused "error reading key \"$keys/$1\": $2" --root --skip-fingerprint-review "$keys/$1"
}
bad file "it is not an ASCII-armoured public key (export it with gpg --armor --export)"
bad alice.sig "it is not ASCII-armoured (export it with gpg --armor --export)"
bad secret.asc "it is a private key (export the public one: gpg --armor --export)"
bad disguised.asc "it holds a private key (export the public one: gpg --armor --export)"
bad both.asc "it holds more than one key (give one key per file)"
bad expired.asc "the key is expired (get it again from the publisher, who may have extended it)"
bad revoked.asc "the key is revoked (ask the publisher for the new one)"
bad certify.asc "the key cannot make signatures (give the one that images are signed with)"
head -c 1048577 /dev/zero >"$keys/large"
bad large "it has more than 1048576 bytes (export the key with less)"

say "without a terminal there is no question"
expect 254 trust --root "$keys/alice.asc"
equal "$err" "trust: prefix: \"\"
trust: key: \"$keys/alice.asc\"
trust: error reviewing key: there is no terminal to ask on (compare the fingerprint and use --skip-fingerprint-review)" "no terminal"
equal "$(head -n 1 "$work/out")" "gpg key fingerprint is: $shown" "fingerprint"
equal "$(tail -n +2 "$work/out" | LC_ALL=C sort)" $'\tAlice of the project\n\talice <alice@example.com>' "identities"
nothing_left

say "without the question"
(umask 077 && expect 0 trust --skip-fingerprint-review --prefix=example.com/team "$keys/alice.asc")
file=$local/trustedkeys/prefix.d/example.com/team/$alice
equal "$(cat "$work/err")" "trust: prefix: \"example.com/team\"
trust: key: \"$keys/alice.asc\"
trust: Trusting \"$keys/alice.asc\" for prefix \"example.com/team\" without fingerprint review.
trust: Added key for prefix \"example.com/team\" at \"$file\"" "messages"
equal "$(cat "$file")" "$(cat "$keys/alice.asc")" "the key"
equal "$(stat -c %a "$file" "${file%/*}" "$local/trustedkeys" | tr '\n' ' ')" "644 755 755 " "modes"
equal "$(find "$local" -type f)" "$file" "files"
expect 0 trust --skip-fingerprint-review --root "$keys/odd.asc" "$keys/bob.asc"
match "$out" $'\todd\\?31m\\?desrever <odd@example.com>\ngpg' "identity that must not be shown as it is"
equal "$(find "$local/trustedkeys/root.d" -type f | wc -l)" 2 "root keys"
nothing_left

say "a key from a pipe, and links on the way of the keystore"
expect 0 trust --skip-fingerprint-review --root <(cat "$keys/carol.asc")
rm -rf "$local/trustedkeys/prefix.d"
ln -s "$work" "$local/trustedkeys/prefix.d"
expect 254 trust --skip-fingerprint-review --prefix=a "$keys/alice.asc"
match "$err" 'something on the way is not a directory \(make it one; symbolic links are not followed\)$' "symbolic link"
[ ! -e "$work/a" ] || die "a symbolic link was followed"
expect 254 "$husk_bin" trust --skip-fingerprint-review --root "$keys/alice.asc"
match "$err" 'no local configuration directory, which keys are added to \(choose one with --local-config\)$' "no directory"

say "without gpg"
mkdir "$work/bin"
ln -s "$(command -v sh)" "$work/bin/sh"
expect 254 env "PATH=$work/bin" "$husk_bin" "--local-config=$local" trust --root "$keys/alice.asc"
one_line_error 'no program gpg in PATH, which checks keys and signatures \(install gpg\)$'

say "killed while gpg works"
mkfifo "$work/victim"
printf '#!/bin/sh\nread -r pid <"%s/victim"\nkill -9 "$pid"\nread -r pid <"%s/victim"\n' "$work" "$work" >"$work/bin/gpg"
chmod +x "$work/bin/gpg"
env "PATH=$work/bin:$PATH" "$husk_bin" "--local-config=$local" trust --root "$keys/alice.asc" &
pid=$!
echo $pid >"$work/victim"
status=0
wait $pid 2>/dev/null || status=$?
equal $status 137 "exit code"
deadline=$((SECONDS + gone_limit))
while pgrep -f "$work/bin/gpg" >/dev/null || [ -n "$(find "$TMPDIR" -mindepth 1)" ]; do
	[ $SECONDS -lt $deadline ] || die "left by a killed husk: $(pgrep -f "$work/bin/gpg") $(find "$TMPDIR" -mindepth 1)"
done
nothing_left

# dialogue STATUS ANSWER... -- ARGS...: husk trust on a terminal; each answer is typed when the question is there. What
# the terminal showed is in $out.
dialogue() {
	local want=$1 got=0
	shift
	python3 - "$husk_bin" "--local-config=$local" trust "$@" >"$work/out" <<'PYTHON' || got=$?
import os, pty, sys

husk, config, command = sys.argv[1:4]
rest = sys.argv[4:]
answers, args = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
pid, fd = pty.fork()
if pid == 0:
    os.execv(husk, [husk, config, command] + args)
seen, asked = b"", 0
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if seen.count(b"(yes/no)?") > asked and answers:
        asked += 1
        answer = answers.pop(0)
        os.write(fd, b"\x04" if answer == "EOF" else answer.encode() + b"\n")
sys.stdout.write(seen.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
	out=$(cat "$work/out")
	[ "$got" -eq "$want" ] || die "exit code $got instead of $want: $out"
	nothing_left
}

say "the question"
rm -rf "$local"
dialogue 0 yes -- --prefix=example.com "$keys/alice.asc"
match "$out" "key: \"$keys/alice.asc\""$'\n'"gpg key fingerprint is: $shown"$'\n\t.*\n\t.*\n'"Are you sure you want to trust this key \\(yes/no\\)\\?"$'\nyes\n'"trust: Trusting \"$keys/alice.asc\" for prefix \"example.com\" after fingerprint review."$'\n'"trust: Added key for prefix" "dialogue"
[ -f "$local/trustedkeys/prefix.d/example.com/$alice" ] || die "the key is not there"
rm -rf "$local"
dialogue 0 y "$(printf %070d 0)" YES no yes -- --root "$keys/alice.asc" "$keys/bob.asc"
equal "$(grep -c "^Please enter 'yes' or 'no'\$" <<<"$out")" 3 "answers that are none"
match "$out" "trust: Not trusting \"$keys/alice.asc\"" "no"
equal "$(find "$local" -type f -printf '%f\n')" "$(tr A-F a-f <"$keys/bob.fpr")" "keys"
rm -rf "$local"
dialogue 254 EOF -- --root "$keys/alice.asc"
match "$out" "trust: error reviewing key: no answer" "end of input"
[ ! -e "$local" ] || die "a key was added without an answer"

say "which files are opened, and no network"
strace -f -e trace=open,openat,openat2,mkdir,socket,connect -o "$work/trace" "$build/bin/husk" "--local-config=$local" trust --root \
	--skip-fingerprint-review "$keys/alice.asc" >/dev/null 2>&1
! grep -E "\"($HOME|$GNUPGHOME|/root/\.gnupg)" "$work/trace" || die "something of the user's was looked at"
! grep -E 'AF_INET|AF_NETLINK' "$work/trace" || die "the network was used"
nothing_left
